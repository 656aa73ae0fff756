internal import Trebuchet

/// What the operator of a server is told of sign-in and clients are not: who was refused what and why, which sessions were
/// ended, what failed. Never codes and tokens. Of each kind a line a second at most, since strangers can make many.
struct AuthLog: Sendable {
    private let refusals: RefusalLog
    private let ends: RefusalLog
    private let store: RefusalLog
    private let mail: RefusalLog
    private let providers: RefusalLog

    init(_ report: @escaping @Sendable (ServerEvent.Level, String) -> Void) {
        func log(_ level: ServerEvent.Level) -> RefusalLog { RefusalLog { report(level, LogLine.of($0)) } }
        refusals = log(.notice)
        ends = log(.notice)
        store = log(.error)
        mail = log(.warning)
        providers = log(.warning)
    }

    /// - Parameter what: `to send a code to ada@example.org`.
    func refused(_ what: String, to connection: CallerConnection, _ error: AuthError) {
        let who = connection.remoteAddress?.host ?? "a client in this process"
        let account = connection.principal.map { " (\($0.id))" } ?? ""
        refusals.note("refused \(who)\(account) \(what): \(error)")
    }

    func ended(_ session: String, of account: String, _ why: String) {
        ends.note("session \(session) of \(account) has ended: \(why)")
    }

    func deleted(_ account: String) { ends.note("account \(account) was deleted by its user") }
    func storeFailed(_ why: String) { store.note(why) }
    func mailFailed(_ why: String) { mail.note(why) }
    func providerFailed(_ why: String) { providers.note(why) }
}

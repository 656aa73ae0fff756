internal import Trebuchet

/// The log of sign-in for the operator: refusals with their reasons, ended sessions, and failures. It never contains codes and
/// tokens. Each kind has at most one line a second, because unauthenticated clients can cause many.
struct AuthLog: Sendable {
    private let refusals: RejectionLog
    private let ends: RejectionLog
    private let store: RejectionLog
    private let mail: RejectionLog
    private let providers: RejectionLog

    init(_ handler: (any ServerEventHandler)?) {
        func log(_ level: ServerEvent.Level) -> RejectionLog {
            RejectionLog { handler?.handle(.logMessage(level, LogLine.of($0))) }
        }
        refusals = log(.notice)
        ends = log(.notice)
        store = log(.error)
        mail = log(.warning)
        providers = log(.warning)
    }

    /// - Parameter what: the operation, as `to send a code to ada@example.org`.
    func refused(_ what: String, to connection: CallerConnection, _ error: AuthError) {
        let who = connection.remoteAddress?.host ?? "a client in this process"
        let account = connection.principal.map { " (\($0.id))" } ?? ""
        refusals.logLine("refused \(who)\(account) \(what): \(error)")
    }

    func ended(_ session: String, of account: String, _ reason: String) {
        ends.logLine("session \(session) of \(account) has ended: \(reason)")
    }

    /// - Parameter actor: the party that deleted it: `its user` or `an operator`.
    func deleted(_ account: String, by actor: String) { ends.logLine("account \(account) was deleted by \(actor)") }

    func storeFailed(_ reason: String) { store.logLine(reason) }
    func mailFailed(_ reason: String) { mail.logLine(reason) }
    func providerFailed(_ reason: String) { providers.logLine(reason) }
}

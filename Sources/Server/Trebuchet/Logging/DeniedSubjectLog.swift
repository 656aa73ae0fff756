internal import Platform
internal import Synchronization
package import TrebuchetActors

/// Logs what `authorize` refuses. A pair of an actor and a method or stream is logged once an hour, since clients may repeat a refused
/// call. All pairs together have one line a second at most.
package final class DeniedSubjectLog: Sendable {
    /// The maximum number of pairs in memory; one more clears all of them.
    package static let most = 256
    private static let pause: UInt64 = 3_600_000_000_000

    private let lines: RejectionLog
    private let known = Mutex<[String: UInt64]>([:])

    package init(_ log: @escaping @Sendable (String) -> Void) { lines = RejectionLog(log) }

    /// - Parameter subject: `'open(_:)' of actor 'collections/todos'`.
    package func recordDenial(
        _ subject: String, _ error: TrebuchetError.Code, to caller: Caller?, at now: UInt64 = MonotonicClock.now
    ) {
        let isNew = known.withLock { known in
            if let last = known[subject], now &- last < Self.pause { return false }
            if known.count >= Self.most { known = [:] }
            known[subject] = now
            return true
        }
        guard isNew else { return }
        lines.logLine(
            "authorize refused \(subject) to \(Self.name(caller)) (\(error)); logged at most once an hour", at: now)
    }

    private static func name(_ caller: Caller?) -> String {
        let address = caller?.connection.remoteAddress.map { " at \($0.host)" } ?? ""
        return caller?.principal.map { "'\($0.id)'\(address)" } ?? "a caller without a principal\(address)"
    }
}

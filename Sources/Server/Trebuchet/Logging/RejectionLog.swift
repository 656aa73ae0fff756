internal import Platform
internal import Synchronization
internal import Transports
package import WebSockets

/// Logs rejected clients with the reason, as an aid for developers. By default at most one line a second, since any client can
/// cause rejections.
package final class RejectionLog: Sendable {
    /// The time of the next permitted line and the number of suppressed ones.
    private struct State {
        var next: UInt64 = 0
        var unreported = 0
    }

    private let log: @Sendable (String) -> Void
    private let pause: UInt64
    private let state = Mutex(State())

    package init(pause: Duration = .seconds(1), _ log: @escaping @Sendable (String) -> Void) {
        (self.log, self.pause) = (log, pause.nanoseconds)
    }

    /// Logs that a connection or an HTTP request was rejected.
    func logRejection(_ refusal: HTTPResponse, from address: SocketAddress?, at now: UInt64 = MonotonicClock.now) {
        let peer = address.map { "\($0)" } ?? "a client"
        logLine("refused \(peer) with \(refusal.status): \(Self.reason(refusal))", at: now)
    }

    /// Returns whether the status is common for requests of missing pages or for silent peers, and therefore unrelated to access.
    static func isCommon(_ status: Int) -> Bool { [404, 405, 408, 426].contains(status) }

    /// Returns the reason that the client receives: the first line of the body, or the detail of a problem document.
    package static func reason(_ refusal: HTTPResponse) -> String {
        HTTPProblem.detail(of: refusal)
            ?? String(decoding: refusal.body.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }

    package func logLine(_ line: String, at now: UInt64 = MonotonicClock.now) {
        let unreported = state.withLock { state -> Int? in
            guard now >= state.next else {
                state.unreported += 1
                return nil
            }
            defer { state.unreported = 0 }
            state.next = now &+ pause
            return state.unreported
        }
        guard let unreported else { return }
        log("\(line)\(unreported > 0 ? " (and \(unreported) before it)" : "")")
    }
}

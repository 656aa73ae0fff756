internal import Platform
internal import Synchronization
internal import Transports
internal import WebSockets

/// Says in the log who was not let in, and why: a developer looks there first. Once a second at most, since anybody can be
/// refused as often as he likes.
package final class RefusalLog: Sendable {
    private static let pause = 1_000_000_000 as UInt64

    private struct State {
        var next: UInt64 = 0
        var unsaid = 0
    }

    private let log: @Sendable (String) -> Void
    private let state = Mutex(State())

    package init(_ log: @escaping @Sendable (String) -> Void) { self.log = log }

    /// A connection, or what was asked for over it, was refused.
    func note(_ refusal: HTTPResponse, from address: SocketAddress?, at now: UInt64 = MonotonicClock.now) {
        let who = address.map { "\($0)" } ?? "a client"
        note("refused \(who) with \(refusal.status): \(Self.reason(refusal))", at: now)
    }

    /// Whether requests that ask for what is not there, or peers that send nothing, are refused with it: then it says nothing of access.
    static func isCommon(_ status: Int) -> Bool { [404, 405, 408, 426].contains(status) }

    /// What the client is told: the first line of it.
    static func reason(_ refusal: HTTPResponse) -> String {
        String(decoding: refusal.body.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }

    package func note(_ line: String, at now: UInt64 = MonotonicClock.now) {
        let unsaid = state.withLock { state -> Int? in
            guard now >= state.next else {
                state.unsaid += 1
                return nil
            }
            defer { state.unsaid = 0 }
            state.next = now &+ Self.pause
            return state.unsaid
        }
        guard let unsaid else { return }
        log("\(line)\(unsaid > 0 ? " (and \(unsaid) before it)" : "")")
    }
}

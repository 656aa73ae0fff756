internal import Networking
internal import WebSockets

extension ServerShard {
    /// How often a draining server looks whether its calls have ended.
    private static let interval = Duration.milliseconds(10)
    /// Clients come back spread over this time, so that a deploy is no stampede.
    private static let spreadMilliseconds = 2_000
    /// How long closing handshakes may take at the end.
    private static let closing = Duration.seconds(1)

    /// Sends clients away, waits for their calls for at most `limit`, and closes the connections.
    func drain(for limit: Duration) async {
        await withCheckedContinuation { continuation in
            reactor.execute {
                for session in self.sessions.values {
                    session.drain(reconnectAfterMilliseconds: Int.random(in: 0..<Self.spreadMilliseconds))
                }
                let deadline = MonotonicClock.now &+ limit.nanoseconds
                self.wait(until: deadline, { self.sessions.values.allSatisfy(\.running.isEmpty) }) {
                    for session in self.sessions.values { session.close(.goingAway, reason: "server is shutting down") }
                    let deadline = MonotonicClock.now &+ Self.closing.nanoseconds
                    self.wait(until: deadline, { self.sessions.isEmpty }) { continuation.resume() }
                }
            }
        }
    }

    private func wait(until deadline: UInt64, _ condition: @escaping () -> Bool, _ done: @escaping () -> Void) {
        if condition() || MonotonicClock.now >= deadline { return done() }
        reactor.schedule(after: Self.interval) { self.wait(until: deadline, condition, done) }
    }
}

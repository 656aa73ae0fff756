internal import Networking
internal import Platform
internal import TrebuchetActors
internal import WebSockets

extension ServerShard {
    /// The time for the closing handshakes at the end.
    private static let closing = Duration.seconds(1)
    /// The time in which clients are to see `goAway`: 2 s, or this part of the time to drain where that is longer.
    private static let noticeTime = (least: Duration.seconds(2), part: 5)
    /// The silence after which no more calls are expected: a program may send one after its network has answered the ping.
    private static let silence = Duration.milliseconds(100)

    /// Drains clients in batches, waits for their calls, both for at most `limit`, and closes the connections.
    func drain(for limit: Duration) async {
        await withCheckedContinuation { continuation in
            reactor.execute { self.drain(for: limit) { continuation.resume() } }
        }
    }

    /// Aborts all connections, and writes no more states.
    func cut() {
        for writer in writers { writer.abandon() }
        for connection in connections.values {
            connection.link.abort()
            connection.linkDidClose(.server)
        }
    }

    /// Answers the remaining calls: their callers learn whether they may have been made.
    private func endWaitingCalls() {
        let error = TrebuchetError(
            .unknownOutcome,
            "the server is shutting down before the change of the call was persisted; it may be persisted later")
        for writer in writers {
            writer.endCalls(error) { ($0 as? ServerConnection)?.isServer == false }
        }
        for connection in clients { connection.endWaitingCalls() }
    }

    /// All connections except the server's own, over which actors call others while they end.
    private var clients: [ServerConnection] { connections.values.filter { !$0.isServer } }

    private func drain(for limit: Duration, _ done: @escaping () -> Void) {
        isDraining = true
        let deadline = reactor.now &+ limit.nanoseconds
        // Half of the time for `goAway`: the last clients' calls get the other half.
        let plan = DrainPlan(clients: clients.count, within: limit / 2)
        inBatches(plan) { connection in
            connection.drain(reconnectAfterMilliseconds: Int.random(in: 0..<plan.spreadMilliseconds))
        } done: {
            // Calls of clients that have not seen goAway are made; after this time all are refused.
            let noticeTime = max(Self.noticeTime.least, limit / Self.noticeTime.part)
            let noticeEnd = min(deadline, self.reactor.now &+ noticeTime.nanoseconds)
            self.wait(until: noticeEnd, { self.areSilent }) {
                for connection in self.clients { connection.dismiss() }
                self.wait(until: deadline, { self.clients.allSatisfy(\.hasNoCalls) }) {
                    self.endWaitingCalls()
                    self.close(done)
                }
            }
        }
    }

    /// A Boolean value that indicates whether each client has answered the ping, waits for no response, and has been silent.
    private var areSilent: Bool {
        let clients = clients
        guard !clients.contains(where: \.mayReceiveLateMessages) else { return false }
        return clients.isEmpty || reactor.now >= lastLateMessage &+ Self.silence.nanoseconds
    }

    private func close(_ done: @escaping () -> Void) {
        inBatches(DrainPlan(clients: clients.count, within: Self.closing)) { connection in
            connection.close(.goingAway, reason: "server is shutting down")
        } done: {
            let deadline = self.reactor.now &+ Self.closing.nanoseconds
            self.wait(until: deadline, { self.clients.isEmpty }) {
                // Connections without an answer end all the same.
                for connection in self.clients {
                    connection.link.abort()
                    connection.linkDidClose()
                }
                done()
            }
        }
    }

    /// Calls `body` for all present connections, one batch in each interval, as long as they still exist.
    private func inBatches(_ plan: DrainPlan, _ body: @escaping (ServerConnection) -> Void, done: @escaping () -> Void)
    {
        next(clients[...], plan.batch, body, done)
    }

    private func next(
        _ rest: ArraySlice<ServerConnection>, _ batch: Int, _ body: @escaping (ServerConnection) -> Void,
        _ done: @escaping () -> Void
    ) {
        for connection in rest.prefix(batch) where connections[connection.name.number] != nil { body(connection) }
        let rest = rest.dropFirst(batch)
        guard !rest.isEmpty else { return done() }
        reactor.schedule(after: DrainPlan.interval) { self.next(rest, batch, body, done) }
    }

    private func wait(until deadline: UInt64, _ condition: @escaping () -> Bool, _ done: @escaping () -> Void) {
        if condition() || reactor.now >= deadline { return done() }
        reactor.schedule(after: DrainPlan.interval) { self.wait(until: deadline, condition, done) }
    }
}

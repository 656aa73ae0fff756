internal import Networking

/// The requirement that replicas acknowledge a write.
package struct RedisConfirmation: Sendable {
    let replicas: Int
    let within: Duration
    /// Returns true if a reply reports a write, new or repeated.
    let isNeeded: @Sendable (RESPValue) -> Bool

    package init(replicas: Int, within: Duration, isNeeded: @escaping @Sendable (RESPValue) -> Bool) {
        (self.replicas, self.within, self.isNeeded) = (replicas, within, isNeeded)
    }

    fileprivate var wait: RedisCommand {
        RedisCommand("WAIT", [.integer(Int64(replicas)), .integer(Int64(max(1, within / .milliseconds(1))))])
    }
}

/// WAIT blocks its connection, so one of them serves all earlier commands.
extension RedisClient {
    /// A write that waits for its confirmation.
    struct Unconfirmed {
        let confirmation: RedisConfirmation
        /// The connection of the write: another one might lead to a server without it.
        let connection: RedisConnection
        let done: @Sendable (Result<Void, RedisError>) -> Void
    }

    /// Waits until replicas have a write. Called in the completion of its command.
    func confirm(_ confirmation: RedisConfirmation, _ done: @escaping @Sendable (Result<Void, RedisError>) -> Void) {
        guard case .open(let connection) = state else { return done(.failure(Self.lost)) }
        unconfirmed.append(Unconfirmed(confirmation: confirmation, connection: connection, done: done))
        guard !isConfirming else { return }
        isConfirming = true
        // After the other replies that have arrived with this one.
        reactor.execute { self.sendWait() }
    }

    private static let lost = RedisError.unknownOutcome(
        "written, but the connection broke before replicas acknowledged it")

    private func sendWait() {
        var current: RedisConnection?
        if case .open(let connection) = state { current = connection }
        let all = unconfirmed.filter { $0.connection === current }
        let lost = unconfirmed.filter { $0.connection !== current }
        unconfirmed = []
        for each in lost { each.done(.failure(Self.lost)) }
        guard let confirmation = all.first?.confirmation else {
            isConfirming = false
            return
        }
        let waiting = all.map { (confirmation: $0.confirmation, done: $0.done) }
        send(confirmation.wait) { outcome in
            for each in waiting { each.done(Self.result(outcome, each.confirmation)) }
            self.reactor.execute { self.sendWait() }
        }
    }

    private static func result(
        _ outcome: Result<RESPValue, RedisError>, _ confirmation: RedisConfirmation
    ) -> Result<Void, RedisError> {
        switch outcome {
        case .success(let answer):
            let count = answer.number ?? 0
            if count >= confirmation.replicas { return .success(()) }
            return .failure(
                .unknownOutcome(
                    "written, but only \(count) of \(confirmation.replicas) replicas acknowledged it within \(confirmation.within)"
                ))
        case .failure(let error):
            return .failure(.unknownOutcome("written, but waiting for replicas failed: \(error)"))
        }
    }
}

internal import Networking

/// That a write counts as done when replicas have it.
package struct RedisConfirmation: Sendable {
    let replicas: Int
    let within: Duration
    /// Whether an answer says that something was written, or had been.
    let isNeeded: @Sendable (RESPValue) -> Bool

    package init(replicas: Int, within: Duration, isNeeded: @escaping @Sendable (RESPValue) -> Bool) {
        (self.replicas, self.within, self.isNeeded) = (replicas, within, isNeeded)
    }

    fileprivate var wait: RedisCommand {
        RedisCommand("WAIT", [.integer(Int64(replicas)), .integer(Int64(max(1, within / .milliseconds(1))))])
    }
}

/// WAIT holds up its connection, so one of them serves all commands that were answered before it.
extension RedisClient {
    struct Unconfirmed {
        let confirmation: RedisConfirmation
        /// Where it was answered: another one might lead to a server that has never had it.
        let connection: RedisConnection
        let done: @Sendable (Result<Void, RedisError>) -> Void
    }

    /// In the completion of a command: waits for replicas to have it.
    func confirm(_ confirmation: RedisConfirmation, _ done: @escaping @Sendable (Result<Void, RedisError>) -> Void) {
        guard case .open(let connection) = state else { return done(.failure(Self.lost)) }
        unconfirmed.append(Unconfirmed(confirmation: confirmation, connection: connection, done: done))
        guard !isConfirming else { return }
        isConfirming = true
        // Behind the other answers that have come with this one.
        reactor.execute { self.sendWait() }
    }

    private static let lost = RedisError.unknownOutcome(
        "it was written, and the connection broke before replicas had said that they have it")

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
        send(confirmation.wait) { outcome in
            for each in all { each.done(Self.result(outcome, each.confirmation)) }
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
                    "it was written, and \(count) of \(confirmation.replicas) replicas said within \(confirmation.within) that they have it"
                ))
        case .failure(let error):
            return .failure(.unknownOutcome("it was written, and replicas were not waited for: \(error)"))
        }
    }
}

internal import Networking
internal import Platform
internal import TrebuchetActors

/// The execution of an `@Idempotent` call, which outlives the connection. Its shard is that of the connection that sent the call first.
///
/// The functions take the in-flight call of the execution, and are isolated to the shard's reactor.
final class IdempotentExecution: Sendable {
    let shard: ServerShard
    private let name: ServerIdempotencyCache.Memory.Name
    /// The record of the call in the store, if actors of the shard may be persisted.
    let record: IdempotencyRecord?

    init(_ name: ServerIdempotencyCache.Memory.Name, _ record: IdempotencyRecord?, at shard: ServerShard) {
        (self.name, self.record, self.shard) = (name, record, shard)
    }

    /// The error of a call that has reached its deadline.
    static var late: TrebuchetError { TrebuchetError(.timeout, "the call did not end before its deadline") }

    // MARK: The response

    /// Records the response, or the timeout.
    func recordResponse(of run: InFlightCall, _ outcome: CallOutcome) {
        guard run.end() != nil else {
            // Its deadline has passed: a later repeat gets the result.
            if case .success = outcome { shard.idempotencyCache.replaceTimeout(name, shard.response(of: outcome)) }
            return
        }
        run.observedCall?.markEnded()
        let response = shard.response(of: outcome)
        for waiting in shard.idempotencyCache.recordResponse(name, response, at: shard.reactor.now) {
            waiting.deliver(response)
        }
        shard.forgetResponsesLater(after: shard.idempotencyCache.time)
    }

    /// Refuses a call that has not started. Its record is withdrawn: a repeat may start.
    func withdraw(_ run: InFlightCall, _ error: any Error) {
        guard run.end() != nil else { return }
        run.observedCall?.markEnded()
        let response = shard.response(of: .failure(error))
        for waiting in shard.idempotencyCache.withdraw(name) { waiting.deliver(response) }
    }

    /// Records the outcome of a call that was cancelled while it waited for an activation: no other event would end it.
    func didStopWaiting(_ run: InFlightCall) {
        // The call of the connection has the same deadline, and is checked first.
        let isLate = shard.reactor.now >= run.deadline
        let cancelled = TrebuchetError(.cancelled, "the call was cancelled before its actor was activated")
        recordResponse(of: run, .failure(isLate ? Self.late : cancelled))
    }

    // MARK: Another attempt

    /// Moves a call that has not started to the next owner of its actor.
    func beginAgain(_ run: InFlightCall) {
        continueAgain(run) { $0.handleReturned($1) }
    }

    /// Repeats a call whose activation was given up before its change was acknowledged. The next owner finds its record in the log.
    func repeatElsewhere(_ run: InFlightCall) {
        continueAgain(run) { connection, message in
            // Its streams move to the next owner first.
            connection.moveStreams(of: [ActorName(message.actorName)])
            connection.repeatCall(message)
        }
    }

    /// Repeats a call that a previous owner started and recorded in its store.
    func lookUpPriorExecution(_ run: InFlightCall) {
        continueAgain(run) { [name] in $0.idempotentCalls.repeatCall(name, $1) }
    }

    /// Withdraws the record, and handles the call again for each caller that waits.
    ///
    /// - Parameter body: Receives the caller's message. The call may have arrived over several connections, each time with another
    ///   callID.
    private func continueAgain(
        _ run: InFlightCall, _ body: @escaping @Sendable (ServerConnection, borrowing Message) -> Void
    ) {
        guard run.end() != nil else { return }
        for waiting in shard.idempotencyCache.withdraw(name) {
            let (connection, call) = (waiting.connection, waiting.call)
            connection.shard.reactor.run {
                guard connection.isOpen, !call.isAnswered, let message = call.message else { return }
                connection.continueAgain(call) { message.withMessage { body(connection, $0) } }
            }
        }
    }
}

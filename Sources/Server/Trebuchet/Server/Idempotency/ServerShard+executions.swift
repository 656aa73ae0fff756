internal import Bytes
internal import Networking
internal import Platform
internal import TrebuchetActors

/// The executions of `@Idempotent` calls whose first connection is of this reactor.
extension ServerShard {
    /// Records the response of an `@Idempotent` call, or its timeout. Isolated to this reactor.
    func recordResponse(_ run: InFlightCall, _ outcome: CallOutcome) {
        guard let name = run.execution?.name else { return }
        guard run.end() != nil else {
            // Its deadline has passed: a later repeat gets the result.
            if case .success = outcome { idempotencyCache.replaceTimeout(name, answer(of: outcome)) }
            return
        }
        run.observedCall?.markEnded()
        let answer = answer(of: outcome)
        for waiting in idempotencyCache.recordResponse(name, answer, at: reactor.now) {
            waiting.deliver(answer)
        }
        forgetAnswersLater(after: idempotencyCache.time)
    }

    /// Refuses a recorded call that has not started. Its record is withdrawn: a repeat may start. Isolated to this reactor.
    func withdrawExecution(_ run: InFlightCall, _ error: any Error) {
        guard let name = run.execution?.name, run.end() != nil else { return }
        run.observedCall?.markEnded()
        let answer = answer(of: .failure(error))
        for waiting in idempotencyCache.withdraw(name) { waiting.deliver(answer) }
    }

    /// Moves a recorded call that has not started to the next owner of its actor.
    func beginAgain(_ run: InFlightCall) {
        takeBack(run) { $0.handleReturned($1) }
    }

    /// Repeats a kept call whose activation was given up before its change was acknowledged. The next owner finds its record in the log.
    func repeatElsewhere(_ run: InFlightCall) {
        takeBack(run) { connection, message in
            // Its streams move to the next owner first.
            connection.moveStreams(of: [ActorName(message.actorName)])
            connection.repeatCall(message)
        }
    }

    /// Repeats a call that a previous owner started and recorded in its store.
    func lookUpPriorExecution(_ run: InFlightCall) {
        guard let name = run.execution?.name else { return }
        takeBack(run) { $0.idempotentCalls.repeatCall(name, $1) }
    }

    /// - Parameter body: Receives the message of each waiting caller. The call may have arrived over several connections, each time
    ///   with another callID.
    private func takeBack(
        _ run: InFlightCall, _ body: @escaping @Sendable (ServerConnection, borrowing Message) -> Void
    ) {
        guard let name = run.execution?.name, run.end() != nil else { return }
        for waiting in idempotencyCache.withdraw(name) {
            let (connection, call) = (waiting.connection, waiting.call)
            connection.shard.reactor.run {
                guard connection.isOpen, !call.isAnswered, let message = call.message else { return }
                connection.continueAgain(call) { message.withMessage { body(connection, $0) } }
            }
        }
    }

    /// Returns the recorded form of an outcome. Isolated to this reactor.
    func answer(of outcome: CallOutcome) -> ServerIdempotencyCache.Memory.Response {
        do {
            return .success(try encodeResult(outcome).map { Array($0) } ?? [])
        } catch {
            let failure = CallFailure(error, of: "the method", coder: coder, context.disclosure)
            return .failure(
                TrebuchetError(.init(failure.code), failure.message, type: failure.type, data: failure.data))
        }
    }

    /// Ends a connection that its client has left, if it still exists and belongs to the principal.
    func closeSession(_ name: CallSessionID, of principal: PrincipalName?) {
        guard let connection = connections[name.number], connection.name == name,
            connection.callerConnection?.principal?.name == principal
        else { return }
        connection.link.abort()
        connection.linkDidClose()
    }

    private func forgetAnswersLater(after wait: Duration) {
        guard !willForgetAnswers else { return }
        willForgetAnswers = true
        reactor.schedule(after: wait) { [weak self] in
            guard let self else { return }
            self.willForgetAnswers = false
            if let next = self.idempotencyCache.removeExpired(at: self.reactor.now) {
                self.forgetAnswersLater(after: next)
            }
        }
    }
}

internal import TrebuchetActors

/// Calls and streams that still wait when a stopping server closes its connections.
extension ServerConnection {
    private static var notMade: TrebuchetError {
        TrebuchetError(.unavailable, "the server is shutting down and did not execute the call; retry")
    }
    private static var unknown: TrebuchetError {
        TrebuchetError(
            .unknownOutcome, "the server is shutting down during the call, which may have taken effect")
    }

    /// Answers the calls that still wait: with `unknownOutcome`, or with `unavailable` when they have not begun. A call that its
    /// client repeats is not answered: it gets its response from the next owner of its actor, or from the next process.
    func endWaitingCalls() {
        guard isOpen else { return }
        recordQueuedCalls()
        abandonCrossing(Self.unknown)
        for call in Array(running.values) + displacedCalls { endWaiting(call) }
        for request in Array(streams.starting.values) {
            // A refusal may have ended the connection.
            guard isOpen else { return }
            request.reservation.withdraw(nil)
            didBegin(request)
            refuseOrMove(request.name, request.callID)
        }
    }

    private func endWaiting(_ call: InFlightCall) {
        // The answer of an earlier call may have ended the connection.
        guard isOpen, !call.isAnswered else { return }
        if let answer = call.answer { return answer.sendResponse() }
        if let stream = call.stream {
            withdraw(call)
            return refuseOrMove(stream, call.callID)
        }
        if call.run != nil || call.repeated != nil || call.forwarded?.isRepeatable == true { return }
        let hasBegun = call.forwarded?.mayHaveBegun ?? call.isAtWork
        if let upstream, !hasBegun {
            withdraw(call)
            return upstream.refuse(call.callID)
        }
        call.cancel()
        finish(call, .failure(hasBegun ? Self.unknown : Self.notMade))
    }

    /// Refuses a stream that does not start here, or moves it to the client's next connection if the client has it already.
    private func refuseOrMove(_ stream: RequestedStream, _ callID: [UInt8]) {
        if !beginsElsewhere(stream, callID) { refuse(stream, callID, Self.notMade) }
    }
}

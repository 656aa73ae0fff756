internal import Networking
internal import Transports
internal import TrebuchetActors

/// Streams that a client has requested and not received yet. Responses follow them: responses of repeated calls, and of calls that
/// ran where the streams come from.
extension ServerConnection {
    /// Answers a call that ran on another reactor, or on none. Its changes may be in streams from there that are starting, whose
    /// first values take one message more than the response.
    ///
    /// - Parameter home: nil for an actor without a reactor.
    func finish(_ call: InFlightCall, _ outcome: CallOutcome, behindStreamsOf home: SystemShard?) {
        if let actor = call.activatedActor ?? call.sharedExecution?.activatedActor, isOpen,
            hasUnrequestedStreams(.of(actor))
        {
            return shard.whenStreamsAreCurrent(for: call, of: self, actor, outcome.bytesOfResult) {
                self.finish(call, outcome)
            }
        }
        guard streams.hasPendingFirstValues, isOpen, home !== shard.states, awaitsStreams(of: home) else {
            return finish(call, outcome)
        }
        shard.whenStreamsAreCurrent(for: call, of: self, .none, outcome.bytesOfResult, for: Self.maximumStreamWait) {
            self.finish(call, outcome)
        }
    }

    /// The longest time for which a stream that does not start delays a response.
    fileprivate static var maximumStreamWait: Duration { .seconds(1) }

    /// The limit for streams of another server, which need a round trip to that server.
    fileprivate static var maximumSharedStreamWait: Duration { .seconds(10) }

    func awaitsStreams(of home: SystemShard?) -> Bool {
        requestMissingVersions()
        return streams.awaitsFirstValues(from: home)
    }

    /// Returns whether a shared stream is starting, or a stream of the actor is being resumed here.
    func awaitsSharedStreams(of actor: ActorName) -> Bool {
        if forwarder?.awaits(actor) == true { return true }
        guard streams.hasPendingFirstValues else { return false }
        requestMissingVersions()
        return streams.awaitsFirstValues
    }

    /// Sends the available versions; if a stream needs others, they are requested.
    fileprivate func requestMissingVersions() {
        if shard.states.isMarked { catchUpStreams() }
    }

    /// Returns whether the requested streams show the state that their actors had up to now.
    fileprivate func streamsAreCurrent(_ awaited: BarrierStreams) -> Bool {
        !hasUnrequestedStreams(awaited) && streams.areCurrent
    }

    /// Returns whether a response waits for streams that have not been requested from their actors yet.
    fileprivate func hasUnrequestedStreams(_ awaited: BarrierStreams) -> Bool {
        switch awaited {
        case .none: false
        case .of(let actor): running.values.contains { $0.streamedActor == actor } || forwarder?.awaits(actor) == true
        case .moved(let actor): forwarder?.awaits(actor) == true
        }
    }

    /// Returns `hasUnrequestedStreams` as a closure for many responses.
    fileprivate func makeUnrequestedStreamsCheck() -> (ResponseBarrier) -> Bool {
        var awaitedActors: Set<ActorName>?
        return { answer in
            guard case .of(let actor) = answer.awaited else { return self.hasUnrequestedStreams(answer.awaited) }
            let actors = awaitedActors ?? Set(self.running.values.lazy.compactMap(\.streamedActor))
            awaitedActors = actors
            return actors.contains(actor) || self.forwarder?.awaits(actor) == true
        }
    }
}

extension ServerShard {
    /// Calls `done` on this reactor as soon as the requested streams are up to date, or after a limit.
    ///
    /// - Parameters:
    ///   - actor: The actor whose owner produced the response.
    ///   - bytes: The size of the response.
    func whenStreamsAreCurrent(
        for call: InFlightCall, of connection: ServerConnection, movedWith actor: ActorName, _ bytes: Int,
        _ done: @escaping () -> Void
    ) {
        whenStreamsAreCurrent(
            for: call, of: connection, .moved(actor), bytes, for: ServerConnection.maximumSharedStreamWait, done)
    }

    /// Calls `done` on this reactor as soon as the connection's streams are up to date and those of the actor have started.
    func whenStreamsAreCurrent(
        for call: InFlightCall, of connection: ServerConnection, _ actor: ActorName, _ bytes: Int,
        _ done: @escaping () -> Void
    ) {
        whenStreamsAreCurrent(
            for: call, of: connection, .of(actor), bytes, for: ServerConnection.maximumSharedStreamWait, done)
    }

    /// - Parameter longest: The longest wait; at most half of the call's remaining time, since a stream that does not start must not
    ///   cost a known response.
    fileprivate func whenStreamsAreCurrent(
        for call: InFlightCall, of connection: ServerConnection, _ awaited: BarrierStreams, _ bytes: Int,
        for longest: Duration, _ done: @escaping () -> Void
    ) {
        if connection.isOpen { connection.requestMissingVersions() }
        let answer = ResponseBarrier(awaited, bytes, done)
        guard connection.isOpen, !connection.streamsAreCurrent(awaited), connection.delayResponse(call, answer) else {
            return done()
        }
        let now = reactor.now
        let half = Duration.nanoseconds(Int64(clamping: call.deadline > now ? (call.deadline - now) / 2 : 0))
        queue(answer, of: connection, for: min(longest, half))
    }

    /// Calls `done` on this reactor as soon as streams that have started at the connection are up to date.
    func whenStartedStreamsAreCurrent(_ connection: ServerConnection, _ done: @escaping () -> Void) {
        // The turn that started them has not ended.
        queue(ResponseBarrier(.none, 0, done), of: connection, for: ServerConnection.maximumStreamWait)
        reactor.execute { self.sendReadyResponses(of: connection) }
    }

    private func queue(
        _ answer: ResponseBarrier, of connection: ServerConnection, for time: Duration
    ) {
        let number = connection.name.number
        let queue =
            responseBarriers[number]
            ?? ResponseBarrierQueue { [weak self] in self?.responseBarriers[number] = nil }
        responseBarriers[number] = queue
        queue.append(answer)
        answer.timer = reactor.schedule(after: time) { [weak answer] in answer?.sendResponse() }
    }

    /// Sends waiting responses after a stream has started, failed to start, or received its missing versions.
    @inline(__always)
    func sendReadyResponses(of connection: ServerConnection) {
        if !responseBarriers.isEmpty { checkBarriers(at: connection) }
    }

    private func checkBarriers(at connection: ServerConnection) {
        let number = connection.name.number
        guard responseBarriers[number] != nil else { return }
        // It may end the connection and thereby its waiting responses.
        if connection.isOpen, connection.streams.areCurrent { connection.requestMissingVersions() }
        guard let queue = responseBarriers[number], !connection.isOpen || connection.streams.areCurrent else {
            return
        }
        let isExpected = connection.makeUnrequestedStreamsCheck()
        for answer in queue.removeReady(where: { !connection.isOpen || !isExpected($0) }) { answer.sendResponse() }
    }
}

extension CallOutcome {
    /// The number of encoded bytes of the call's result.
    var bytesOfResult: Int { (try? get())?.byteCount ?? 0 }
}

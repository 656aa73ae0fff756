internal import Trebuchet
internal import TrebuchetActors
internal import TrebuchetCluster

/// Resumes streams at their next owner. Meanwhile calls of their actors queue behind them, and responses from other nodes wait.
extension RemoteCallForwarder {
    func resume(_ stream: MovingStream, at position: StreamRequest.ResumePosition, pauses: Bool) {
        if let excess { return connection.failStream(stream.streamID, excess) }
        let forwarded = ForwardedStream(stream, at: position, pauses: pauses)
        endReplaced(streams.insert(forwarded))
        perform(pauses ? .pause : .lookUpOwner, for: forwarded)
    }

    /// Passes an input to the stream with this name, and performs the action. Returns it, since the caller has the message to pass
    /// on.
    @discardableResult
    func handle(_ input: ForwardedStream.Input, of streamID: [UInt8]) -> ForwardedStream.Action {
        guard let stream = streams[streamID] else { return .none }
        let before = streams.awaitedCount
        let action = streams.handle(input, of: streamID)
        // Responses that waited for it follow what arrived with this message.
        if streams.awaitedCount < before { shard.scheduleReadyResponses(of: connection) }
        perform(action, for: stream)
        return action
    }

    /// Passes the outcome of an attempt to its stream, and performs the action.
    @discardableResult
    func handle(_ input: ForwardedStream.Input, of attempt: ForwardedStreams.Attempt) -> ForwardedStream.Action {
        streams[attempt] == nil ? .none : handle(input, of: attempt.streamID)
    }

    /// Performs an action that needs no message of the owner.
    private func perform(_ action: ForwardedStream.Action, for stream: ForwardedStream) {
        let streamID = stream.streamID
        switch action {
        case .none, .passOn, .passOnStart, .share, .fail: break
        case .lookUpOwner: proceed(traffic(of: stream.slot))
        case .replaceOwner(let number):
            if let channel = channel(number) { node.forgetOwner(of: stream.slot, channel.node) }
            proceed(traffic(of: stream.slot))
        case .sendRequest(let number):
            if let attempt = streams.attempt(for: streamID) { channel(number)?.sendRequest(stream, attempt) }
        case .resumeHere: connection.resumeHere(stream.resumption(as: stream.callID), streamID)
        case .pause:
            guard let attempt = streams.attempt(for: streamID) else { return }
            shard.reactor.schedule(after: ServerConnection.retryPause) { [weak self] in
                if let self, self.isOpen { self.handle(.pauseEnded, of: attempt) }
            }
        case .unsubscribe(let number): channel(number)?.unsubscribe(streamID)
        case .leave(let number):
            channel(number)?.unsubscribe(streamID)
            proceed(traffic(of: stream.slot))
        }
    }

    /// Ends a stream whose name another stream has now. The owner has ended it if it sends both.
    func endReplaced(_ stream: ForwardedStream?, by channel: OwnerChannel? = nil) {
        guard let source = stream?.phase.source, source != channel?.number, let stream else { return }
        self.channel(source)?.unsubscribe(stream.streamID)
    }

    func endPauses(in slot: ClusterSlot) {
        for streamID in streams.names(in: slot, .paused) { _ = streams.handle(.pauseEnded, of: streamID) }
    }

    /// Lets responses wait for the missing versions of a resumed stream, for a limited time: nothing arrives if the client has every
    /// version.
    func limitCatchUp(of streamID: [UInt8]) {
        guard let attempt = streams.attempt(for: streamID) else { return }
        shard.reactor.schedule(after: Self.longestCatchingUp) { [weak self] in
            self?.handle(.catchUpTimedOut, of: attempt)
        }
    }

    func awaits(_ actor: ActorName) -> Bool {
        guard streams.awaits(actor) else { return false }
        removeResumedHere()
        return streams.awaits(actor)
    }

    /// Removes the streams that the connection has resumed at this node.
    func removeResumedHere() {
        for streamID in streams.resumingHere where !connection.isResuming(streamID) {
            _ = streams.handle(.resumedHere, of: streamID)
        }
    }

    /// Returns whether the actor's slot has calls in flight or queued, or streams that wait to be resumed. New messages queue behind
    /// them.
    func hasEarlierMessages(behind message: borrowing Message) -> Bool {
        guard !slots.isEmpty || streams.awaitedCount > 0 else { return false }
        let slot = ClusterSlot(of: message.actorName)
        return slots[slot]?.calls.isEmpty == false || streams.hasQueued(in: slot) || streams.hasPaused(in: slot)
    }

    /// Moves requests and streams of a slot to its new owner, before the previous owner reports the change.
    func ownerDidChange(of slot: ClusterSlot, to node: ClusterNode) {
        guard isOpen else { return }
        for stream in Array(streams.all) where stream.slot == slot {
            // The first stream may open the channel.
            handle(.ownerChanged(to: channels[node]?.number), of: stream.streamID)
        }
    }
}

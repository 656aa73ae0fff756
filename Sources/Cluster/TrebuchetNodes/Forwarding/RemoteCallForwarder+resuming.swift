internal import Trebuchet
internal import TrebuchetActors
internal import TrebuchetCluster

/// Resumes streams at their next owner. Meanwhile calls of their actors queue behind them, and responses from other nodes wait.
extension RemoteCallForwarder {
    func resume(_ stream: MovingStream, at position: StreamRequest.ResumePosition, pauses: Bool) {
        let forwarded = ForwardedStream(stream, at: position)
        if pauses { scheduleResume(forwarded) } else { resume(forwarded) }
    }

    /// Resumes a stream of an actor that lives here now.
    func resumeHere(_ stream: ForwardedStream) {
        guard node.nodes.owns(stream.actor) else { return resume(stream) }
        connection.resumeHere(stream.resumption(as: stream.callID), stream.streamID)
    }

    /// Resumes a stream at its current owner, after the versions that the client has. Repeats that as often as necessary.
    func resume(_ stream: ForwardedStream) {
        if let excess { return connection.failStream(stream.streamID, excess) }
        proceed(wait(for: stream))
    }

    /// Resumes a stream after a pause, for example when its owner could not load the actor.
    func scheduleResume(_ stream: ForwardedStream) {
        stream.channel = nil
        resuming.insert(stream)
        let traffic = traffic(of: stream.slot)
        traffic.paused.append(stream)
        shard.reactor.schedule(after: ServerConnection.retryPause) { [weak self] in
            guard let self, self.isOpen, traffic.paused.contains(where: { $0 === stream }) else { return }
            self.resume(stream)
        }
    }

    /// Notes that a stream is resumed or no longer wanted. Responses that waited for it follow what arrived with this message.
    func didResume(_ streamID: [UInt8]) -> ForwardedStream? {
        guard let stream = resuming.remove(streamID) else { return nil }
        unpause(stream)
        shard.scheduleReadyResponses(of: connection)
        return stream
    }

    private func unpause(_ stream: ForwardedStream) {
        guard let traffic = slots[stream.slot], !traffic.paused.isEmpty else { return }
        traffic.paused.removeAll { $0 === stream }
    }

    /// Notes that a stream was resumed under another name. If nothing arrives, the client has every version, or catch-up takes
    /// longer than responses wait.
    func startCatchUp(of stream: ForwardedStream) {
        let streamID = stream.streamID
        catchingUp.insert(stream)
        shard.reactor.schedule(after: Self.longestCatchingUp) { [weak self] in self?.didCatchUp(streamID) }
    }

    /// Notes that every version that the client lacked has arrived, or that none will.
    func didCatchUp(_ streamID: [UInt8]) {
        guard !catchingUp.isEmpty, catchingUp.remove(streamID) != nil else { return }
        shard.scheduleReadyResponses(of: connection)
    }

    func awaits(_ actor: ActorName) -> Bool {
        if resuming.has(actor) || catchingUp.has(actor) { return true }
        guard loading.has(actor) else { return false }
        loading.removeAll { !connection.isResuming($0) }
        return loading.has(actor)
    }

    /// Returns whether the actor's slot has calls in flight or queued, or streams that wait to be resumed. New messages queue behind
    /// them.
    func hasEarlierMessages(behind message: borrowing Message) -> Bool {
        guard !slots.isEmpty, let traffic = slots[ClusterSlot(of: message.actorName)] else { return false }
        return !traffic.calls.isEmpty || !traffic.streams.isEmpty || !traffic.paused.isEmpty
    }

    /// Moves requests and streams of a slot to its new owner, before the previous owner reports the change.
    func ownerDidChange(of slot: ClusterSlot, to node: ClusterNode) {
        guard isOpen else { return }
        for stream in streams.values where stream.slot == slot && stream.channel?.node != node {
            streams[stream.streamID] = nil
            stream.channel?.unsubscribe(stream.streamID)
            resume(stream)
        }
        for stream in resuming.all(of: slot) {
            // A stream without a channel waits for the owner's name or for the end of its pause.
            guard let channel = stream.channel else { continue }
            guard channel.node != node else { continue }
            channel.removeRequest(stream)
            resume(stream)
        }
        guard let traffic = slots[slot], !traffic.paused.isEmpty else { return }
        for stream in traffic.paused { _ = wait(for: stream) }
        proceed(traffic)
    }

    func wait(for stream: ForwardedStream) -> SlotSendState {
        stream.channel = nil
        resuming.insert(stream)
        let traffic = traffic(of: stream.slot)
        unpause(stream)
        traffic.streams.append(stream)
        return traffic
    }
}

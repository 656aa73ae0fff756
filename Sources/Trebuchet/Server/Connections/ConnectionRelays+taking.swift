internal import TrebuchetActors
internal import TrebuchetCluster

/// Streams that are taken up at their next owner. As long as they are, calls of their actors stand behind them, and answers that other
/// nodes have made wait for them.
extension ConnectionRelays {
    /// Takes a stream up at the owner of now, behind what the client has; as often as that takes.
    func resume(_ stream: RelayedStream) {
        if let excess { return connection.failStream(stream.streamID, excess) }
        proceed(wait(for: stream))
    }

    /// The same in a moment: its owner could not load the actor, say.
    func resumeLater(_ stream: RelayedStream) {
        stream.line = nil
        resuming.insert(stream)
        let traffic = traffic(of: stream.slot)
        traffic.paused.append(stream)
        shard.reactor.schedule(after: Self.pause) { [weak self] in
            guard let self, self.isOpen, traffic.paused.contains(where: { $0 === stream }) else { return }
            self.resume(stream)
        }
    }

    /// A stream is taken up, or is not wanted any more: answers that it has held back may go, behind what has come with this.
    func didResume(_ streamID: [UInt8]) -> RelayedStream? {
        guard let stream = resuming.remove(streamID) else { return nil }
        unpause(stream)
        let (shard, connection) = (shard, connection)
        if !shard.answersBehindStreams.isEmpty { shard.reactor.execute { shard.streamsMayShow(connection) } }
        return stream
    }

    private func unpause(_ stream: RelayedStream) {
        guard let traffic = slots[stream.slot], !traffic.paused.isEmpty else { return }
        traffic.paused.removeAll { $0 === stream }
    }

    /// A stream was taken up under another name. Where nothing comes the client lacks nothing, or that takes longer than answers wait.
    func didTakeUp(_ stream: RelayedStream) {
        let streamID = stream.streamID
        catchingUp.insert(stream)
        shard.reactor.schedule(after: Self.longestCatchingUp) { [weak self] in self?.didShow(streamID) }
    }

    /// All has come of a stream that its client lacked, or nothing more comes.
    func didShow(_ streamID: [UInt8]) {
        guard !catchingUp.isEmpty, catchingUp.remove(streamID) != nil else { return }
        let (shard, connection) = (shard, connection)
        if !shard.answersBehindStreams.isEmpty { shard.reactor.execute { shard.streamsMayShow(connection) } }
    }

    /// Whether a stream of an actor is being taken up: what a call has changed at its owner is not with the client yet.
    func awaits(_ actor: ActorName) -> Bool {
        if resuming.has(actor) || catchingUp.has(actor) { return true }
        guard loading.has(actor) else { return false }
        loading.removeAll { !connection.isTakingUp($0) }
        return loading.has(actor)
    }

    /// Whether calls of a slot are away, or wait, or streams of it wait to be taken up: what comes stands behind them.
    func hasEarlier(of slot: ClusterSlot) -> Bool {
        slots[slot].map { !$0.calls.isEmpty || !$0.streams.isEmpty || !$0.paused.isEmpty } ?? false
    }

    /// A node owns a slot from now on, and nobody here has heard of it: what was asked elsewhere, or comes from elsewhere, is asked there.
    func ownerDidChange(of slot: ClusterSlot, to node: ClusterNode) {
        guard isOpen else { return }
        for stream in streams.values where stream.slot == slot && stream.line?.node != node {
            streams[stream.streamID] = nil
            stream.line?.unsubscribe(stream.streamID)
            resume(stream)
        }
        for stream in resuming.all(of: slot) {
            // One without a line waits to hear who the owner is, or would in a moment.
            guard let line = stream.line else { continue }
            guard line.node != node else { continue }
            line.forget(stream)
            resume(stream)
        }
        guard let traffic = slots[slot], !traffic.paused.isEmpty else { return }
        for stream in traffic.paused { _ = wait(for: stream) }
        proceed(traffic)
    }

    func wait(for stream: RelayedStream) -> SlotTraffic {
        stream.line = nil
        resuming.insert(stream)
        let traffic = traffic(of: stream.slot)
        unpause(stream)
        traffic.streams.append(stream)
        return traffic
    }
}

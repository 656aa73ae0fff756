internal import Networking
internal import Platform
internal import Relays
internal import Synchronization
internal import TrebuchetCluster

/// One end of a channel between two nodes. Its frames are handled on its reactor, in order.
protocol NodeChannelHandler: AnyObject, Sendable {
    var reactor: Reactor { get }
    /// True if frames are handled in the order of arrival on the thread that receives node messages, instead of on the reactor.
    var handlesFramesInPlace: Bool { get }
    func receive(_ frame: NodeFrame)
    /// Called when messages were lost or the other node has left: no further frames arrive.
    ///
    /// - Parameter received: the number of sent messages that may have arrived; later ones certainly have not.
    func channelDidBreak(received: UInt64)
    /// Called when too much data, most of it on this channel, waited for the other node. The channel has ended, and undelivered
    /// messages must not be sent again.
    func channelDidOverflow(received: UInt64)
}

extension NodeChannelHandler {
    var handlesFramesInPlace: Bool { false }
}

/// The message transport between this node and other nodes.
///
/// Frames for a node are batched in one message while the previous message is sent, which keeps their order. An engine delivers
/// at most once: a missing message breaks all channels to its sender, and their ends handle that. The other node is notified and
/// does the same (`NodeMessage.Epochs`).
final class NodeTransport: Sendable {
    /// The maximum number of bytes that may wait for one node. Beyond it the channels with the most waiting bytes end, until a
    /// quarter is free.
    static let maximumQueuedCount = 256 << 20
    /// The maximum size of the frames of one message; every engine accepts that size.
    static let messageBytes = 512 << 10
    /// The maximum size of a frame's payload; larger messages are split.
    static let partBytes = 256 << 10

    private static let maximumAbsences = 3
    private static let roundsBetweenChecks = 8

    private typealias Overflown = NodeTransportState.Overflown
    private typealias ChannelEntry = NodeTransportState.ChannelEntry

    private let engine: any ClusterEngine
    private let maximumQueuedCount: Int
    let node: ClusterNode
    /// True after an operator has requested the stop of this node.
    let stopRequests = StateRelay(false)
    private let state = Mutex(NodeTransportState())
    /// Creates the local end of a channel that another node opens; nil if it is refused.
    private let open: @Sendable (NodeChannel, NodeFrame) -> (any NodeChannelHandler)?
    /// Called with each node to which messages were lost.
    private let didLose: @Sendable (ClusterNode) -> Void

    init(
        _ engine: any ClusterEngine, as node: ClusterNode, maximumQueuedCount: Int = NodeTransport.maximumQueuedCount,
        open: @escaping @Sendable (NodeChannel, NodeFrame) -> (any NodeChannelHandler)?,
        didLose: @escaping @Sendable (ClusterNode) -> Void = { _ in }
    ) {
        self.engine = engine
        self.maximumQueuedCount = maximumQueuedCount
        self.node = node
        self.open = open
        self.didLose = didLose
    }

    /// Starts receiving.
    func start() async throws(ClusterEngineError) {
        let inbox = try await engine.subscribeToInbox(of: node) { [weak self] in self?.receive($0) }
        state.withLock { $0.inbox = inbox }
    }

    /// Returns when the waiting frames have been sent, or after one second.
    func flush() async {
        await Self.wait { state.withLock { $0.peers.values.contains { $0.isSending } } }
    }

    /// Waits as long as the condition is true, for at most one second.
    static func wait(while condition: () -> Bool) async {
        let deadline = MonotonicClock.now &+ 1_000_000_000
        while condition(), MonotonicClock.now < deadline { try? await Task.sleep(for: .milliseconds(2)) }
    }

    /// Accepts no further messages, and returns when the frames of the accepted ones are passed on, or after one second. `end` reports it to other nodes.
    func refuseMessages() async {
        state.withLock { $0.acceptance = .refused }
        await Self.wait { state.withLock { $0.dispatches > 0 } }
    }

    /// Ends all channels, and reports to the other nodes which of their messages this node has accepted: they send the later ones to the
    /// next owners. Otherwise the outcome of calls that arrive too late would be unknown. Returns after at most one second.
    func end() async {
        let nodes = state.withLock { state in
            state.acceptance = .refusedAndReported
            return Array(state.peers.keys)
        }
        for node in nodes { reportEnd(to: node) }
        await flush()
    }

    private func reportEnd(to node: ClusterNode) {
        guard state.withLock({ $0.informed.insert(node).inserted }) else { return }
        closeChannels(node, because: .lost)
        send([.stopped], to: node)
    }

    /// Stops sending and receiving without notifying the local channel ends.
    func stopExchange() {
        let inbox = state.withLock { state in
            state.isClosed = true
            for node in Array(state.peers.keys) { state.peers[node]?.clear() }
            defer { state.inbox = nil }
            return state.inbox
        }
        inbox?.cancel()
    }

    /// Stops sending and receiving; all channels break.
    func close() {
        stopExchange()
        let ends = state.withLock { state in
            defer { (state.ends, state.peers) = ([:], [:]) }
            return Array(state.ends.values)
        }
        Self.break(ends)
    }

    /// Returns whether the node has announced that it stops.
    func isLeaving(_ node: ClusterNode) -> Bool { state.withLock { $0.peers[node]?.isLeaving == true } }

    /// Notifies other nodes that this node is being stopped: it no longer counts as live, but still responds.
    func announceLeaving() {
        let peers = state.withLock { state in
            state.isLeaving = true
            return Array(state.peers.keys)
        }
        for node in peers { send([NodeFrame(.leaving, channelID: 0)], to: node) }
    }

    // MARK: Channels

    /// Creates a channel from this node to another one.
    func makeChannel(to node: ClusterNode, _ end: any NodeChannelHandler) -> NodeChannel {
        state.withLock { state in
            state.lastChannelNumber += 1
            let channel = NodeChannel(exchange: self, node: node, number: state.lastChannelNumber, isOwn: true)
            if !state.isClosed { state.ends[ChannelEntry(node: node, number: channel.number, isOwn: true)] = end }
            return channel
        }
    }

    /// Removes a channel; no further frames are delivered to its end.
    func removeChannel(_ channel: NodeChannel) {
        _ = state.withLock { state in
            if channel.isOwn { state.acceptedMessages[channel.number] = nil }
            let entry = ChannelEntry(node: channel.node, number: channel.number, isOwn: channel.isOwn)
            return state.ends.removeValue(forKey: entry)
        }
    }

    /// The nodes with which messages are exchanged.
    var nodes: [ClusterNode] { state.withLock { Array($0.peers.keys) } }

    /// The number of channels, for tests.
    var channelCount: Int { state.withLock { $0.ends.count } }
    var waitingBytes: Int { state.withLock { $0.peers.values.reduce(0) { $0 + $1.waitingBytes } } }

    // MARK: Sending

    /// Queues frames for a node.
    ///
    /// - Parameter completion: retained while the frames are in this node's memory.
    func send(_ frames: [NodeFrame], to node: ClusterNode, _ completion: SendCompletion? = nil) {
        let (mustSend, overflown): (Bool, [Overflown]) = state.withLock { state in
            guard !state.isClosed else { return (false, []) }
            // A message on a broken channel would never be executed.
            let frames = frames.filter { frame in
                guard frame.kind == .toOwner || frame.kind == .toOwnerPart else { return true }
                guard state.ends[ChannelEntry(node: node, number: frame.channelID, isOwn: true)] != nil else {
                    return false
                }
                if frame.kind == .toOwner { state.acceptedMessages[frame.channelID, default: 0] += 1 }
                return true
            }
            guard !frames.isEmpty else { return (false, []) }
            state.addPeer(node)
            let mustSend = state.peers[node]?.enqueueFrames(frames, completion) == true
            return (
                mustSend,
                state.peers[node]?.waitingBytes ?? 0 > maximumQueuedCount
                    ? state.closeLargestChannels(node, to: maximumQueuedCount / 4 * 3) : []
            )
        }
        for (end, received) in overflown { end.reactor.execute { end.channelDidOverflow(received: received) } }
        guard mustSend else { return }
        Task { await self.sendAll(to: node) }
    }

    private func sendAll(to node: ClusterNode) async {
        while let (message, completions) = next(for: node) {
            defer { withExtendedLifetime(completions) {} }
            do throws(ClusterEngineError) {
                let isThere = try await deliver(message, to: node)
                let isGone = state.withLock { state in
                    defer { state.peers[node]?.hasLeft = false }
                    return state.peers[node]?.hasLeft == true
                }
                if !isThere || isGone {
                    closeChannels(node, because: .lost, isThere ? [] : message.frames)
                } else {
                    state.withLock { $0.peers[node]?.didDeliver(message.epochs) }
                }
            } catch {
                closeChannels(node, because: .lost, error.code == .unknownOutcome ? [] : message.frames)
            }
        }
    }

    /// Delivers over a direct link, or else through the engine.
    private func deliver(_ message: NodeMessage, to node: ClusterNode) async throws(ClusterEngineError) -> Bool {
        guard state.withLock({ $0.peers[node]?.hasStopped != true }) else { return false }
        let bytes = message.bytes
        if let direct = state.withLock({ $0.direct }), await direct.send(bytes, number: message.number, to: node) {
            return true
        }
        return try await engine.sendMessage(bytes, to: node)
    }

    private func next(for node: ClusterNode) -> (NodeMessage, [SendCompletion])? {
        state.withLock { state in
            guard let (number, epochs, waiting) = state.peers[node]?.next(Self.messageBytes) else { return nil }
            let message = NodeMessage(from: self.node.description, number: number, epochs, waiting.map(\.frame))
            return (message, waiting.compactMap(\.sendCompletion))
        }
    }

    // MARK: Receiving

    private func receive(_ event: InboxEvent) {
        switch event {
        case .message(let bytes):
            guard let message = NodeMessage(bytes), let sender = ClusterNode(message.sender) else { return }
            receive(message, from: sender)
        case .messagesMissed, .ended:
            for node in state.withLock({ Array($0.peers.keys) }) { closeLostChannels(of: node) }
        }
    }

    /// Handles a message from a direct link; returns false if it is invalid or from another node.
    func receive(_ bytes: [UInt8], from node: ClusterNode) -> Bool {
        guard let message = NodeMessage(bytes), message.sender == node.description else { return false }
        receive(message, from: node)
        return true
    }

    /// Returns the number of the last message from a node whose frames were passed on.
    func handled(from node: ClusterNode) -> UInt64 { state.withLock { $0.peers[node]?.handled ?? 0 } }

    /// Uses direct links for sending from now on, where they exist.
    func setLinks(_ links: NodeLinks) { state.withLock { $0.direct = links } }

    private func receive(_ message: NodeMessage, from sender: ClusterNode) {
        let acceptance = state.withLock { state in
            if state.isClosed || state.acceptance == .accepted {
                state.dispatches += 1
                return NodeTransportState.Acceptance.accepted
            }
            state.addPeer(sender)
            return state.acceptance
        }
        if acceptance == .refusedAndReported { reportEnd(to: sender) }
        guard acceptance == .accepted else { return }
        // Count the message as handled only at the end. The next message may arrive on another path as soon as this one counts,
        // and must be queued behind these frames.
        defer {
            state.withLock {
                $0.dispatches -= 1
                if $0.peers[sender]?.peerEpoch == message.epochs.sender { $0.peers[sender]?.handled = message.number }
            }
        }
        let received: PeerState.ReceiveAction? = state.withLock { state in
            guard !state.isClosed else { return nil }
            state.addPeer(sender)
            // Set before its channels end: their calls, which are sent again then, must not go to this peer.
            if message.frames.contains(where: \.isStopped) { state.peers[sender]?.hasStopped = true }
            return state.peers[sender]?.receive(message.number, message.epochs)
        }
        guard let received else { return }
        var frames = message.frames
        if received.endsChannels {
            let report = frames.first { $0.kind == .ended && $0.channelID == 0 }
            closeChannels(sender, because: .itLost, accepted: report?.number)
        }
        if received.hasGap { closeLostChannels(of: sender) }
        if received.isLate { frames.removeAll { $0.kind != .stop && $0.kind != .leaving } }
        var batches: [(reactor: Reactor, work: [(any NodeChannelHandler, NodeFrame)])] = []
        for frame in frames {
            switch frame.kind {
            case .leaving:
                state.withLock { $0.peers[sender]?.isLeaving = true }
                continue
            case .stop:
                stopRequests.update(true)
                continue
            default: break
            }
            guard let end = openedChannel(for: frame, from: sender) else { continue }
            // Ahead of the other frames of the message, which is harmless.
            guard !end.handlesFramesInPlace else {
                end.receive(frame)
                continue
            }
            if let index = batches.firstIndex(where: { $0.reactor === end.reactor }) {
                batches[index].work.append((end, frame))
            } else {
                batches.append((end.reactor, [(end, frame)]))
            }
        }
        for (reactor, work) in batches {
            reactor.execute { for (end, frame) in work { end.receive(frame) } }
        }
    }

    /// Returns the local end of the frame's channel, which an `open` frame creates; nil if there is none.
    private func openedChannel(for frame: NodeFrame, from sender: ClusterNode) -> (any NodeChannelHandler)? {
        let key = ChannelEntry(node: sender, number: frame.channelID, isOwn: frame.kind.isToClientNode)
        if let end = state.withLock({ $0.ends[key] }) { return end }
        let channel = NodeChannel(exchange: self, node: sender, number: frame.channelID, isOwn: false)
        guard frame.kind == .open else {
            // The peer uses a channel that was lost here, and does not know it.
            if !frame.kind.isToClientNode, frame.kind != .close { channel.send(.ended) }
            return nil
        }
        guard let end = open(channel, frame) else {
            channel.send(.ended)
            return nil
        }
        let (isOpen, isLeaving) = state.withLock { state in
            if !state.isClosed { state.ends[key] = end }
            return (!state.isClosed, state.isLeaving)
        }
        if isLeaving { send([NodeFrame(.leaving, channelID: 0)], to: sender) }
        return isOpen ? end : nil
    }

    // MARK: Losses

    /// Ends all channels to a node that has left or with which messages were lost.
    func closeLostChannels(of node: ClusterNode) {
        closeChannels(node, because: .lost)
        sendEpoch(to: node)
    }

    /// Sends this node's epoch to a node that does not know it; retried in the next round if it fails.
    private func sendEpoch(to node: ClusterNode) {
        let mustSend = state.withLock { $0.isClosed ? false : $0.peers[node]?.beginSendingEpoch() ?? false }
        if mustSend { Task { await self.sendAll(to: node) } }
    }

    /// The origin of a loss.
    private enum Reason {
        /// This node has lost messages.
        case lost
        /// The other node reports a loss.
        case itLost
    }

    /// Ends all channels to a node. The loss is reported in the next round, or with the next message.
    ///
    /// - Parameters:
    ///   - undelivered: frames that certainly have not arrived, in addition to the waiting ones.
    ///   - last: the number of the last message that the other node has accepted; nil if unknown.
    private func closeChannels(
        _ node: ClusterNode, because reason: Reason, _ undelivered: [NodeFrame] = [], accepted last: UInt64? = nil
    ) {
        let closed = state.withLock {
            $0.closeChannels(to: node, startsEpoch: reason == .lost, undelivered, accepted: last)
        }
        didLose(node)
        for (end, received) in closed { end.reactor.execute { end.channelDidBreak(received: received) } }
    }

    /// Periodically sends a message to each node with channels, since a missing last message is noticed only when the next one
    /// arrives.
    private func check(_ liveNodes: Set<ClusterNode>) {
        let silent: [ClusterNode] = state.withLock { state in
            state.rounds += 1
            guard !state.isClosed, state.rounds % Self.roundsBetweenChecks == 0 else { return [] }
            let used = Set(state.ends.keys.lazy.map(\.node)).intersection(liveNodes)
            return used.filter { state.peers[$0]?.beginCheck() == true }
        }
        for node in silent { Task { await self.sendAll(to: node) } }
    }

    /// Removes nodes that are not live. A node that does not receive either is gone at once, since other nodes take over its
    /// slots immediately. A node that receives and is being stopped may complete its work. Any other node must be absent
    /// in several readings of the list in a row, since a new node may send before this node has seen it as live.
    ///
    /// - Parameter reads: the number of times that the list was read. While a slow coordination store delays the next reading, this
    ///   method receives the same list again, which is no further absence.
    func removeNodes(allBut liveNodes: [ClusterNode], reads: UInt64) async {
        let liveNodes = Set(liveNodes)
        let removed = state.withLock { state in
            let isNew = reads != state.liveReads
            state.liveReads = reads
            for node in Array(state.peers.keys) {
                let before = state.peers[node]?.absences ?? 0
                state.peers[node]?.absences = liveNodes.contains(node) ? 0 : isNew ? before + 1 : max(before, 1)
            }
            return state.peers.filter { $0.value.absences > 0 }
                .map { ($0.key, mayListen: $0.value.isLeaving || $0.value.absences < Self.maximumAbsences) }
        }
        for (node, mayListen) in removed {
            if mayListen, (try? await engine.sendMessage([], to: node)) != false { continue }
            let isSending = state.withLock { state in
                guard state.peers[node]?.isSending == true else { return false }
                state.peers[node]?.hasLeft = true
                return true
            }
            if isSending { continue }
            closeChannels(node, because: .lost)
            state.withLock { if $0.peers[node]?.isSending == false { $0.peers[node] = nil } }
        }
        // The message that reports a loss may itself have been lost.
        for node in liveNodes { sendEpoch(to: node) }
        check(liveNodes)
    }

    private static func `break`(_ ends: [any NodeChannelHandler]) {
        for end in ends { end.reactor.execute { end.channelDidBreak(received: .max) } }
    }
}

internal import Bytes
internal import Networking
internal import Synchronization
internal import Trebuchet
internal import TrebuchetActors
internal import TrebuchetCluster

/// The shared streams of a node, each received once for all of its clients, and the channels to their owners.
final class SharedStreamSubscriptions: Sendable {
    /// The actor and the property of a stream.
    struct Key: Hashable, Sendable {
        let actor: String
        let target: String
    }

    /// The streams and channels.
    private struct State {
        var streams: [ClusterSlot: [Key: SharedStream]] = [:]
        var receivers: [ClusterNode: SharedStreamReceiver] = [:]
        var didMove: (@Sendable (ClusterSlot, ClusterNode) -> Void)?
        var reactor: Reactor?
        var memory: MemoryBudget?
    }

    private let exchange: NodeTransport
    private let state = Mutex(State())
    private let numbers = Atomic<UInt64>(0)

    init(_ exchange: NodeTransport) { self.exchange = exchange }

    /// Configures the streams before their first use.
    ///
    /// - Parameters:
    ///   - reactor: receives notifications of broken channels.
    ///   - memory: the budget in which large updates count.
    ///   - didMove: called with a slot that a node does not own any more, before its subscribers request their streams again.
    func set(
        reactor: Reactor?, memory: MemoryBudget?, didMove: @escaping @Sendable (ClusterSlot, ClusterNode) -> Void
    ) {
        state.withLock { state in (state.reactor, state.memory, state.didMove) = (reactor, memory, didMove) }
    }

    /// Returns a stream to an authorized client through `answer`, at once if it is available.
    ///
    /// - Parameters:
    ///   - node: the owner of the actor, which has authorized the client.
    ///   - seen: the position that the client has received.
    ///   - answer: called once, on any thread; for a stream, its receiver must call `didJoin`.
    func join(
        _ key: Key, at node: ClusterNode, behind seen: (epoch: String, sequence: UInt64),
        _ answer: @escaping @Sendable (SharedStream, SharedStreamOutcome) -> Void
    ) {
        while true {
            let stream = state.withLock { state in
                let slot = ClusterSlot(of: key.actor)
                if let found = state.streams[slot]?[key] { return found }
                let created = SharedStream(key, in: self)
                state.streams[slot, default: [:]][key] = created
                return created
            }
            if stream.join(at: node, behind: seen, { answer(stream, $0) }) { return }
        }
    }

    var memory: MemoryBudget? { state.withLock { $0.memory } }
    /// The number of streams.
    var count: Int { state.withLock { $0.streams.values.reduce(0) { $0 + $1.count } } }

    func nextNumber() -> UInt64 { numbers.wrappingAdd(1, ordering: .relaxed).newValue }

    func remove(_ stream: SharedStream) {
        state.withLock { state in
            let slot = ClusterSlot(of: stream.key.actor)
            guard state.streams[slot]?[stream.key] === stream else { return }
            state.streams[slot]?[stream.key] = nil
            if state.streams[slot]?.isEmpty == true { state.streams[slot] = nil }
        }
    }

    /// Handles the new owner of a slot: streams from other nodes end, and their subscribers request them from the new owner.
    func slotDidMove(_ slot: ClusterSlot, to node: ClusterNode) {
        for stream in state.withLock({ $0.streams[slot]?.values.map { $0 } ?? [] }) { stream.ownerDidChange(to: node) }
    }

    func didMove(_ slot: ClusterSlot, from node: ClusterNode) { state.withLock { $0.didMove }?(slot, node) }

    // MARK: Channels

    func receiver(for node: ClusterNode) -> SharedStreamReceiver {
        state.withLock { state in
            if let receiver = state.receivers[node] { return receiver }
            guard let reactor = state.reactor else { preconditionFailure("a node with clients has no reactors") }
            let receiver = SharedStreamReceiver(to: node, at: exchange, reactor: reactor, of: self)
            state.receivers[node] = receiver
            return receiver
        }
    }

    func remove(_ receiver: SharedStreamReceiver) {
        state.withLock { if $0.receivers[receiver.node] === receiver { $0.receivers[receiver.node] = nil } }
    }
}

/// A shared-stream channel of this node to the owner of actors that its clients observe.
///
/// Its messages are handled where node messages arrive, before any later message reaches a reactor. A client that calls and
/// observes through this node therefore receives each change before the response of its call.
final class SharedStreamReceiver: NodeChannelHandler {
    /// The streams and the state of the channel.
    private struct State {
        var streams: [UInt64: SharedStream] = [:]
        /// The received parts of an incomplete message.
        var parts: [UInt8] = []
        var unacknowledgedBytes = 0
        var isBroken = false
    }

    let reactor: Reactor
    let node: ClusterNode
    var handlesFramesInPlace: Bool { true }
    private weak let user: SharedStreamSubscriptions?
    private let channel = Mutex<NodeChannel?>(nil)
    private let state = Mutex(State())

    init(to node: ClusterNode, at exchange: NodeTransport, reactor: Reactor, of user: SharedStreamSubscriptions) {
        self.user = user
        self.node = node
        self.reactor = reactor
        let created = exchange.makeChannel(to: node, self)
        channel.withLock { $0 = created }
        created.send(.open, SharedStreamMessage.opening)
    }

    private func send(_ message: [UInt8]) {
        channel.withLock { $0 }?.send(message, part: .toOwnerPart, last: .toOwner)
    }

    func startStream(_ stream: SharedStream, _ number: UInt64, _ request: SharedStreamRequest) {
        let isBroken = state.withLock { state in
            if !state.isBroken { state.streams[number] = stream }
            return state.isBroken
        }
        // The channel broke after the lookup. Run it later, since the stream is just beginning.
        if isBroken { return reactor.execute { stream.endLostSubscription(number) } }
        send(SharedStreamMessage.bytes(.begin, number, request))
    }

    /// - Parameter mayReturn: whether a subscriber may return soon.
    func endStream(_ number: UInt64, mayReturn: Bool) {
        removeStream(number)
        send(SharedStreamMessage.bytes(.end, number, mayReturn ? [1] : []))
    }

    /// Removes a stream that has ended at its owner.
    func removeStream(_ number: UInt64) { state.withLock { $0.streams[number] = nil } }

    // MARK: NodeChannelHandler

    func receive(_ frame: NodeFrame) {
        switch frame.kind {
        case .toClientPart: state.withLock { $0.parts += frame.payload }
        case .toClient:
            let bytes = state.withLock { state in
                defer { state.parts = [] }
                return state.parts.isEmpty ? frame.payload : state.parts + frame.payload
            }
            if let message = SharedStreamMessage(bytes) { receive(message) }
            acknowledgeReceivedBytes(bytes.count)
        case .ended: channelDidBreak(received: 0)
        default: break
        }
    }

    private func receive(_ message: SharedStreamMessage) {
        let stream = state.withLock { state in
            message.kind == .moved ? state.streams.removeValue(forKey: message.number) : state.streams[message.number]
        }
        stream?.receive(message)
    }

    private func acknowledgeReceivedBytes(_ count: Int) {
        let removed = state.withLock { state in
            state.unacknowledgedBytes += count
            guard state.unacknowledgedBytes >= OwnerChannel.acknowledgementThreshold else { return 0 }
            defer { state.unacknowledgedBytes = 0 }
            return state.unacknowledgedBytes
        }
        if removed > 0 { channel.withLock { $0 }?.send(.acknowledgement, number: UInt64(removed)) }
    }

    func channelDidBreak(received: UInt64) {
        user?.remove(self)
        let ended = channel.withLock { $0 }
        ended?.send(.close)
        ended?.discard()
        let lost = state.withLock { state in
            defer { (state.streams, state.isBroken) = ([:], true) }
            return state.streams
        }
        for (number, stream) in lost { stream.endLostSubscription(number) }
    }

    func channelDidOverflow(received: UInt64) { channelDidBreak(received: received) }
}

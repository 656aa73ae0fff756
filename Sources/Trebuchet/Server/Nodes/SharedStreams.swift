internal import Bytes
internal import Networking
internal import Synchronization
internal import TrebuchetActors
internal import TrebuchetCluster

/// What a node observes of actors of other nodes for its clients, each stream once, and its lines to their owners.
final class SharedStreams: Sendable {
    struct Key: Hashable, Sendable {
        let actor: String
        let target: String
    }

    private struct State {
        var streams: [ClusterSlot: [Key: SharedStream]] = [:]
        var lines: [ClusterNode: SharedLine] = [:]
        var didMove: (@Sendable (ClusterSlot, ClusterNode) -> Void)?
        var reactor: Reactor?
        var memory: MemoryBudget?
    }

    private let exchange: NodeExchange
    private let state = Mutex(State())
    private let numbers = Atomic<UInt64>(0)

    init(_ exchange: NodeExchange) { self.exchange = exchange }

    /// Before it is used.
    ///
    /// - Parameters:
    ///   - reactor: hears of lines that break.
    ///   - memory: where large updates are counted.
    ///   - didMove: told of a slot that a node does not own any more, before who has observed there asks again.
    func set(
        reactor: Reactor?, memory: MemoryBudget, didMove: @escaping @Sendable (ClusterSlot, ClusterNode) -> Void
    ) {
        state.withLock { state in (state.reactor, state.memory, state.didMove) = (reactor, memory, didMove) }
    }

    /// Gives a stream to who may observe it: at once when it is here.
    ///
    /// - Parameters:
    ///   - node: that has said so, and owns the actor.
    ///   - seen: what whoever asks has of it.
    ///   - answer: called once, from anywhere; with a stream, `didJoin` is to be called of what this gives.
    func join(
        _ key: Key, at node: ClusterNode, behind seen: (epoch: String, sequence: UInt64),
        _ answer: @escaping @Sendable (SharedStream, SharedStream.Answer) -> Void
    ) {
        while true {
            let stream = state.withLock { state in
                let slot = ClusterSlot(of: key.actor)
                if let found = state.streams[slot]?[key] { return found }
                let made = SharedStream(key, in: self)
                state.streams[slot, default: [:]][key] = made
                return made
            }
            if stream.join(at: node, behind: seen, { answer(stream, $0) }) { return }
        }
    }

    var memory: MemoryBudget? { state.withLock { $0.memory } }
    /// How many there are.
    var count: Int { state.withLock { $0.streams.values.reduce(0) { $0 + $1.count } } }

    func nextNumber() -> UInt64 { numbers.wrappingAdd(1, ordering: .relaxed).newValue }

    func forget(_ stream: SharedStream) {
        state.withLock { state in
            let slot = ClusterSlot(of: stream.key.actor)
            guard state.streams[slot]?[stream.key] === stream else { return }
            state.streams[slot]?[stream.key] = nil
            if state.streams[slot]?.isEmpty == true { state.streams[slot] = nil }
        }
    }

    /// A node owns a slot from now on: what other nodes sent of it ends, and who has observed that asks there.
    func leave(_ slot: ClusterSlot, to node: ClusterNode) {
        for stream in state.withLock({ $0.streams[slot]?.values.map { $0 } ?? [] }) { stream.leave(for: node) }
    }

    func didMove(_ slot: ClusterSlot, from node: ClusterNode) { state.withLock { $0.didMove }?(slot, node) }

    // MARK: Lines

    func line(to node: ClusterNode) -> SharedLine {
        state.withLock { state in
            if let line = state.lines[node] { return line }
            guard let reactor = state.reactor else { preconditionFailure("a node without reactors has clients") }
            let line = SharedLine(to: node, at: exchange, reactor: reactor, of: self)
            state.lines[node] = line
            return line
        }
    }

    func forget(_ line: SharedLine) {
        state.withLock { if $0.lines[line.node] === line { $0.lines[line.node] = nil } }
    }
}

/// A line of this node itself to one that owns actors which its clients observe.
///
/// What comes over it is handled where messages between nodes come in, before anything behind it gets to a reactor: so who calls
/// and observes through this node has each change before the answer of his call.
final class SharedLine: RelayEnd {
    private struct State {
        var streams: [UInt64: SharedStream] = [:]
        /// What has come of a message.
        var parts: [UInt8] = []
        var taken = 0
        var isBroken = false
    }

    let reactor: Reactor
    let node: ClusterNode
    var isToldInPlace: Bool { true }
    private weak let user: SharedStreams?
    private let line = Mutex<RelayLine?>(nil)
    private let state = Mutex(State())

    init(to node: ClusterNode, at exchange: NodeExchange, reactor: Reactor, of user: SharedStreams) {
        self.user = user
        self.node = node
        self.reactor = reactor
        let made = exchange.newLine(to: node, self)
        line.withLock { $0 = made }
        made.send(.open, SharedMessage.opening)
    }

    private func send(_ message: [UInt8]) {
        line.withLock { $0 }?.send(message, part: .toOwnerPart, last: .toOwner)
    }

    func begin(_ stream: SharedStream, _ number: UInt64, _ beginning: SharedBeginning) {
        let isBroken = state.withLock { state in
            if !state.isBroken { state.streams[number] = stream }
            return state.isBroken
        }
        // It has broken since it was found. Not here: the stream is just beginning.
        if isBroken { return reactor.execute { stream.lose(number) } }
        send(SharedMessage.bytes(.begin, number, beginning))
    }

    /// - Parameter mayReturn: whether somebody may want it again soon.
    func end(_ number: UInt64, mayReturn: Bool) {
        forget(number)
        send(SharedMessage.bytes(.end, number, mayReturn ? [1] : []))
    }

    /// It has ended at its owner.
    func forget(_ number: UInt64) { state.withLock { $0.streams[number] = nil } }

    // MARK: RelayEnd

    func receive(_ frame: RelayFrame) {
        switch frame.kind {
        case .toClientPart: state.withLock { $0.parts += frame.payload }
        case .toClient:
            let bytes = state.withLock { state in
                defer { state.parts = [] }
                return state.parts.isEmpty ? frame.payload : state.parts + frame.payload
            }
            if let message = SharedMessage(bytes) { receive(message) }
            tellWhatWasTaken(bytes.count)
        case .ended: lineDidBreak(received: 0)
        default: break
        }
    }

    private func receive(_ message: SharedMessage) {
        let stream = state.withLock { state in
            message.kind == .moved ? state.streams.removeValue(forKey: message.number) : state.streams[message.number]
        }
        stream?.receive(message)
    }

    private func tellWhatWasTaken(_ count: Int) {
        let taken = state.withLock { state in
            state.taken += count
            guard state.taken >= OwnerLine.tellingBytes else { return 0 }
            defer { state.taken = 0 }
            return state.taken
        }
        if taken > 0 { line.withLock { $0 }?.send(.taken, number: UInt64(taken)) }
    }

    func lineDidBreak(received: UInt64) {
        user?.forget(self)
        let ended = line.withLock { $0 }
        ended?.send(.gone)
        ended?.forget()
        let lost = state.withLock { state in
            defer { (state.streams, state.isBroken) = ([:], true) }
            return state.streams
        }
        for (number, stream) in lost { stream.lose(number) }
    }

    func lineDidOverflow(received: UInt64) { lineDidBreak(received: received) }
}

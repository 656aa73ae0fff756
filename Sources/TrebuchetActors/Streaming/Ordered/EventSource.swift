internal import Bytes
internal import Transports
internal import Relays
internal import Synchronization
internal import TrebuchetWire

/// A source that has no value, but a place where it is.
package protocol PositionedSource: AnyStateSource {
    /// The number of the last event, for somebody who is about to observe: what comes from now on is kept for a while. In
    /// the actor's isolation.
    func position(keptFor time: Duration) -> UInt64
}

/// Numbers the events of one `@StreamedEvents` property, encodes each once and hands it to one node per reactor.
///
/// `@unchecked Sendable`: `backlog`, `memoryBudget` and `local` are touched in the isolation of the actor alone; the rest is constant or has
/// a lock.
final class EventSource<Event: Codable & Sendable>: PositionedSource, @unchecked Sendable {
    let epoch = StreamEpoch.make()
    let home: SystemShard?
    let ordering: StreamOrdering?
    private let nodes = Mutex<[StateNode]>([])
    private let subscribers = Atomic<Int>(0)
    private let encodes = Atomic<Int>(0)
    private let memory = StreamMemory()
    private var backlog: Backlog
    /// Where large events are counted: at the server whose clients observe.
    private var memoryBudget: MemoryBudget?
    /// Readers in this process.
    private var local: EventRelay<Event>?

    init(buffer: Int, home: SystemShard?) {
        self.home = home
        ordering = StreamOrdering(buffer: buffer, isEvents: true)
        backlog = Backlog(limit: buffer, position: 0)
    }

    var subscriberCount: Int { subscribers.load(ordering: .relaxed) }
    var encodeCount: Int { encodes.load(ordering: .relaxed) }
    var nodeCount: Int { nodes.withLock { $0.count } }
    func countSubscriber(_ change: Int) { subscribers.add(change, ordering: .relaxed) }

    /// Whether somebody observes it over the network, or did and may come back.
    var isObserved: Bool { subscriberCount > 0 || nodeCount > 0 || memory.isKept(on: home) }

    /// Readers in this process. In the actor's isolation.
    var localEvents: EventRelay<Event> {
        if let local { return local }
        let made = EventRelay<Event>()
        local = made
        return made
    }

    func position(keptFor time: Duration) -> UInt64 {
        memory.keep(for: time, on: home)
        return backlog.position
    }

    /// In the actor's isolation.
    func send(_ event: Event) {
        local?.send(event)
        let nodes = self.nodes.withLock { $0 }
        let sequence = backlog.position + 1
        guard !nodes.isEmpty || memory.isKept(on: home) && memoryBudget?.isExhausted != true else {
            backlog = Backlog(limit: ordering?.buffer ?? 1, position: sequence)
            return
        }
        do {
            let update = try update(event, sequence)
            backlog.append(update)
            for node in nodes { node.send(.update(update)) }
        } catch {
            // Nobody can be told of this event, so nobody may go on as if there were none.
            backlog = Backlog(limit: ordering?.buffer ?? 1, position: sequence)
            for node in nodes {
                let text = "an event of type \(Event.self) cannot be encoded: \(describe(error))"
                node.send(.failed(TrebuchetError(.internal, text)))
            }
        }
    }

    private func update(_ event: Event, _ sequence: UInt64) throws -> StateUpdate {
        encodes.add(1, ordering: .relaxed)
        var data = ByteBuffer()
        try (home?.coder ?? ValueCoder()).encode(event, into: &data)
        var message = ByteBuffer(capacity: data.count + 128)
        StreamDataParts.appendSuffix(sequence: sequence, data: data.bytes, into: &message)
        let suffix = SharedBytes(message.bytes, countedIn: memoryBudget)
        return StateUpdate(sequence: sequence, current: suffix, patch: nil, wholeByteCount: suffix.count)
    }

    func publish() -> Int { 0 }
    func whole() -> StateEvent { .failed(TrebuchetError(.internal, "events have no value")) }
    func requestWhole(for node: StateNode) {}

    func attach(_ node: StateNode) {
        memoryBudget = node.shard.memory
        let isAttached = nodes.withLock { nodes in
            // Its last subscriber may have gone before this reached the actor's reactor.
            guard !node.isDetached else { return false }
            if !nodes.contains(where: { $0 === node }) { nodes.append(node) }
            return true
        }
        if isAttached { node.send(.joined(backlog)) }
    }

    func detach(_ node: StateNode) {
        nodes.withLock { nodes in
            node.isDetached = true
            nodes.removeAll { $0 === node }
        }
        if node.wasLost { memory.keep(for: node.shard.resumeTime, on: home) }
    }

    /// The actor is gone; called from whatever thread let go of it last.
    func end() {
        local?.finish()
        let nodes = self.nodes.withLock { nodes in
            defer { nodes = [] }
            return nodes
        }
        for node in nodes { node.send(.ended) }
    }
}

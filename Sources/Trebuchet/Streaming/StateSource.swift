internal import Bytes
internal import Relays
internal import Synchronization
internal import TrebuchetWire

/// Where the versions of a state come from.
protocol AnyStateSource: AnyObject, Sendable {
    /// Changes whenever the state may have been built anew.
    var epoch: String { get }
    /// The reactor that the state's actor lives on; nil when it runs on the global pool.
    var home: ReactorShard? { get }
    /// How many streams carry this state over the network now.
    var subscriberCount: Int { get }
    /// How many versions were encoded so far.
    var encodeCount: Int { get }
    /// Nodes that are sent each version.
    var nodeCount: Int { get }
    /// Sends the newest version to the nodes, if it was not sent yet. In the actor's isolation. Returns what the update
    /// counts in the turn's budget.
    @discardableResult
    func publish() -> Int
    /// Adds a node and sends it the current version. In the actor's isolation.
    func attach(_ node: StateNode)
    func detach(_ node: StateNode)
    func countSubscriber(_ change: Int)
}

/// Encodes a state once per version and hands it to one node per reactor.
///
/// `@unchecked Sendable`: `subscribers`, `encodes` and `nodes` may be used from anywhere, `epoch` and `home` are constant;
/// all else is touched in the isolation of the state's actor alone.
final class StateSource<Value: Codable & Sendable>: AnyStateSource, @unchecked Sendable {
    let epoch = StreamEpoch.make()
    /// The value; nil once the actor is gone, which may be while an update is under way.
    let read: () -> Value?
    let home: ReactorShard?
    let nodes = Mutex<[StateNode]>([])
    private let subscribers = Atomic<Int>(0)
    private let encodes = Atomic<Int>(0)

    /// Versions for observers in this process, who fetch the value themselves; nil until there is one.
    private var localVersions: StateRelay<UInt64>?
    private(set) var version: UInt64
    private var published: UInt64 = 0
    /// Who writes a persisted state, and the last version that it was given. Such a state is sent when it is written.
    var persistence: PersistedStates?
    var captured: UInt64 = 0
    /// What the next version may be sent as the difference from, while somebody observes.
    private var last: StateUpdate?
    private var history = PatchHistory()
    /// Below this many bytes of JSON a difference is not worth its search.
    private static var smallestPatched: Int { 128 }
    private var isMarked = false

    init(version: UInt64, home: ReactorShard?, reading value: @escaping () -> Value?) {
        self.version = version
        self.home = home
        read = value
    }

    /// What observers in this process follow. In the actor's isolation.
    var versions: StateRelay<UInt64> {
        if let localVersions { return localVersions }
        let made = StateRelay(version)
        localVersions = made
        return made
    }

    /// The value with its version; nil when the actor is gone. In the actor's isolation.
    var snapshot: (value: Value, version: UInt64)? { read().map { ($0, version) } }

    var subscriberCount: Int { subscribers.load(ordering: .relaxed) }
    var encodeCount: Int { encodes.load(ordering: .relaxed) }

    var nodeCount: Int { nodes.withLock { $0.count } }

    func countSubscriber(_ change: Int) { subscribers.add(change, ordering: .relaxed) }

    func didChange(version: UInt64) {
        self.version = version
        localVersions?.update(version)
        if let persistence { return persistence.didChange() }
        guard !isMarked else { return }
        if let home {
            isMarked = true
            home.mark(self)
        } else {
            publish()
        }
    }

    @discardableResult
    func publish() -> Int {
        isMarked = false
        guard published < version, persistence == nil else { return 0 }
        let nodes = self.nodes.withLock { $0 }
        guard !nodes.isEmpty, let value = read() else {
            forgetUpdates()
            return 0
        }
        let event = update(of: value, for: nodes)
        for node in nodes { node.send(event) }
        guard case .update(let update) = event else { return 0 }
        return max(update.byteCount, ReactorShard.leastEagerBytes)
    }

    func attach(_ node: StateNode) {
        guard let value = read() else { return node.send(.ended) }
        publish()
        let isAttached = nodes.withLock { nodes in
            // Its last subscriber may have gone before this reached the actor's reactor.
            guard !node.isDetached else { return false }
            if !nodes.contains(where: { $0 === node }) { nodes.append(node) }
            return true
        }
        guard isAttached else { return }
        published = version
        var event: StateEvent
        if node.version == .v3, let last, last.sequence == version {
            event = .update(last)
        } else {
            event = encode(value, for: [node])
        }
        if node.version == .v3, case .update(let update) = event { event = .attached(update, history) }
        guard let persistence else { return node.send(event) }
        let ready = event
        persistence.show { node.send(ready) }
    }

    func detach(_ node: StateNode) {
        nodes.withLock { nodes in
            node.isDetached = true
            nodes.removeAll { $0 === node }
        }
    }

    /// The actor is gone; called from whatever thread let go of it last.
    func end() {
        localVersions?.finish()
        let nodes = self.nodes.withLock { nodes in
            defer { nodes = [] }
            return nodes
        }
        for node in nodes { node.send(.ended) }
    }

    /// Nobody observes any more.
    func forgetUpdates() {
        last = nil
        history = PatchHistory()
    }

    /// The current version for all who observe it.
    func update(of value: Value, for nodes: [StateNode]) -> StateEvent {
        published = version
        let event = encode(value, for: nodes)
        if case .update(let update) = event { history.remember(update) }
        return event
    }

    private func encode(_ value: Value, for nodes: [StateNode]) -> StateEvent {
        do {
            let current = nodes.contains { $0.version == .v3 } ? try suffix(value, .v3) : nil
            let update = StateUpdate(
                sequence: version, current: current,
                legacy: nodes.contains { $0.version != .v3 } ? try suffix(value, .v2) : nil,
                patch: current.flatMap(patch))
            if current != nil { last = update }
            return .update(update)
        } catch {
            return .failed("state of type \(Value.self) cannot be encoded: \(describe(error))")
        }
    }

    /// The new version as the difference from the last one, when that is smaller.
    private func patch(to current: SharedBytes) -> StateUpdate.Patch? {
        guard let last, last.sequence < version, let old = last.data, current.count >= Self.smallestPatched else {
            return nil
        }
        let new = StreamDataParts.data(inSuffix: current.bytes, sequence: version)
        let overhead = #","base":"#.utf8.count + 20
        guard new.count > overhead,
            let patch = JSONPatch.difference(from: old, to: new, maximumBytes: new.count - overhead)
        else { return nil }
        var message = ByteBuffer(capacity: patch.count + 128)
        patch.withUnsafeBytes {
            StreamDataParts.appendSuffix(sequence: version, patch: $0, base: last.sequence, into: &message)
        }
        return StateUpdate.Patch(base: last.sequence, suffix: SharedBytes(message.bytes))
    }

    private func suffix(_ value: Value, _ wire: ProtocolVersion) throws -> SharedBytes {
        encodes.add(1, ordering: .relaxed)
        var data = ByteBuffer()
        let coder = home?.coder(for: wire) ?? ValueCoder(version: wire)
        try coder.encode(value, into: &data)
        var message = ByteBuffer(capacity: data.count + 128)
        StreamDataParts.appendSuffix(sequence: version, data: data.bytes, version: wire, into: &message)
        return SharedBytes(message.bytes)
    }
}

enum StreamEpoch {
    /// Eight random hexadecimal digits.
    static func make() -> String {
        let digits = String(UInt32.random(in: .min ... .max), radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }
}

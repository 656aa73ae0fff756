internal import Bytes
internal import Relays
internal import Synchronization
internal import TrebuchetWire

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// A state with its type erased, as the server sees it. Used in the isolation of the state's actor.
protocol AnyStateCell: AnyObject {
    func anySource(home: ReactorShard?) -> any AnyStateSource
    /// The values in JSON, the newest for whoever asks.
    func encodedValues<A: TrebuchetActor>(of actor: A, named stream: String) -> AsyncStream<Data>
}

extension StateCell: AnyStateCell {
    func anySource(home: ReactorShard?) -> any AnyStateSource { source(home: home) }

    func encodedValues<A: TrebuchetActor>(of actor: A, named stream: String) -> AsyncStream<Data> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let task = Task {
                let coder = ValueCoder(version: .v3)
                for await value in await StateObservation<A, Value>(actor, stream)() {
                    var buffer = ByteBuffer()
                    guard (try? coder.encode(value, into: &buffer)) != nil else { break }
                    continuation.yield(Data(buffer.bytes))
                }
                continuation.finish()
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }
}

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
/// `@unchecked Sendable`: `localVersions`, `version`, `published` and `isMarked` are touched in the isolation of the state's actor alone;
/// the rest is constant or has a lock.
final class StateSource<Value: Codable & Sendable>: AnyStateSource, @unchecked Sendable {
    let epoch = StreamEpoch.make()
    /// Weak, because the cell may be freed with its actor while an update is under way.
    private weak var cell: StateCell<Value>?
    let home: ReactorShard?
    private let nodes = Mutex<[StateNode]>([])
    private let subscribers = Atomic<Int>(0)
    private let encodes = Atomic<Int>(0)

    /// Versions for observers in this process, who fetch the value themselves; nil until there is one.
    private var localVersions: StateRelay<UInt64>?
    private var version: UInt64
    private var published: UInt64 = 0
    private var isMarked = false

    init(cell: StateCell<Value>, version: UInt64, home: ReactorShard?) {
        self.cell = cell
        self.version = version
        self.home = home
    }

    /// What observers in this process follow. In the actor's isolation.
    var versions: StateRelay<UInt64> {
        if let localVersions { return localVersions }
        let made = StateRelay(version)
        localVersions = made
        return made
    }

    var subscriberCount: Int { subscribers.load(ordering: .relaxed) }
    var encodeCount: Int { encodes.load(ordering: .relaxed) }

    var nodeCount: Int { nodes.withLock { $0.count } }

    func countSubscriber(_ change: Int) { subscribers.add(change, ordering: .relaxed) }

    func cellDidChange(_ cell: StateCell<Value>, version: UInt64) {
        self.version = version
        localVersions?.update(version)
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
        guard published < version, let cell else { return 0 }
        let nodes = self.nodes.withLock { $0 }
        guard !nodes.isEmpty else { return 0 }
        published = version
        let event = encode(cell.value, for: nodes)
        for node in nodes { node.send(event) }
        guard case .update(let update) = event else { return 0 }
        return max(update.byteCount, ReactorShard.leastEagerBytes)
    }

    func attach(_ node: StateNode) {
        guard let cell else { return node.send(.ended) }
        publish()
        let isAttached = nodes.withLock { nodes in
            // Its last subscriber may have gone before this reached the actor's reactor.
            guard !node.isDetached else { return false }
            if !nodes.contains(where: { $0 === node }) { nodes.append(node) }
            return true
        }
        guard isAttached else { return }
        published = version
        node.send(encode(cell.value, for: [node]))
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

    private func encode(_ value: Value, for nodes: [StateNode]) -> StateEvent {
        do {
            let update = StateUpdate(
                sequence: version,
                current: nodes.contains { $0.version == .v3 } ? try suffix(value, .v3) : nil,
                legacy: nodes.contains { $0.version != .v3 } ? try suffix(value, .v2) : nil)
            return .update(update)
        } catch {
            return .failed("state of type \(Value.self) cannot be encoded: \(describe(error))")
        }
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

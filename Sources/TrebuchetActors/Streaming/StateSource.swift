internal import Bytes
internal import Deltas
internal import Relays
internal import Synchronization
internal import TrebuchetWire

/// Where the versions of a state come from.
package protocol AnyStateSource: AnyObject, Sendable {
    /// Changes whenever the state may have been built anew.
    var epoch: String { get }
    /// Set when nothing may be left out.
    var ordering: StreamOrdering? { get }
    /// The reactor that the state's actor lives on; nil when it runs on the global pool.
    var home: SystemShard? { get }
    /// The identity of the source that the changes come from: another one's, of a view of it.
    var root: ObjectIdentifier { get }
    /// Whether subscribers on its own reactor wait for a version that others have.
    var isBeingSent: Bool { get }
    /// Whether somebody new is to get what holds now, and not what was sent last.
    var asksForFirst: Bool { get }
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
    /// The same when it was noted that the state has changed.
    func publishMarked()
    /// Adds a node and sends it the current version. In the actor's isolation.
    func attach(_ node: StateNode)
    /// The newest version with its whole value, `StateEvent.whole` unless something is wrong. In the actor's isolation.
    func whole() -> StateEvent
    /// Has that sent to a node, soon. From anywhere.
    func requestWhole(for node: StateNode)
    func detach(_ node: StateNode)
    func countSubscriber(_ change: Int)
}

extension AnyStateSource {
    var root: ObjectIdentifier { ObjectIdentifier(self) }
    package var isBeingSent: Bool { false }
    var asksForFirst: Bool { false }
    package func publishMarked() {}
}

/// Encodes a state once per version and hands it to one node per reactor.
///
/// Of a state that knows its changes only these are encoded, and the whole value when somebody needs it.
///
/// `@unchecked Sendable`: `subscribers`, `encodes`, `memory`, `filters` and `nodes` may be used from anywhere, `epoch`, `home`
/// and `ordering` are constant; all else is touched in the isolation of the state's actor alone.
final class StateSource<Value: Codable & Sendable>: NotedSource, FilterableSource, @unchecked Sendable {
    let epoch = StreamEpoch.make()
    var access: StateAccess<Value>
    let home: SystemShard?
    let nodes = Mutex<[StateNode]>([])
    let filters = FilterList()
    let ordering: StreamOrdering?
    let memory = StreamMemory()
    /// The last updates, where none may be left out.
    private var backlog: Backlog?
    /// Each version for readers in this process, where none may be left out; nil until there is one.
    private var localEach: LocalObservation<Value>.Each?
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
    /// Where its versions are counted: at the server whose clients observe.
    private var memoryBudget: MemoryBudget?
    /// How long the whole value was when it was encoded last.
    private var wholeByteCount = 0
    /// Below this many bytes of JSON a difference is not worth its search.
    private static var smallestPatched: Int { 128 }
    private var isMarked = false

    init(version: UInt64, home: SystemShard?, delivery: StreamDelivery = .latest, access: StateAccess<Value>) {
        var access = access
        if case .every(let buffer) = delivery {
            ordering = StreamOrdering(buffer: max(1, buffer), isEvents: false)
            backlog = Backlog(limit: buffer, position: version)
            // A version is made while the property is being changed: nothing can be taken out of it then.
            access.takeChanges = nil
        } else {
            ordering = nil
        }
        self.version = version
        self.home = home
        memoryBudget = home?.memory
        self.access = access
    }

    /// What observers in this process follow. In the actor's isolation.
    var versions: StateRelay<UInt64> {
        if let localVersions { return localVersions }
        let made = StateRelay(version)
        localVersions = made
        return made
    }

    /// What readers in this process follow when nothing may be left out. In the actor's isolation.
    var each: LocalObservation<Value>.Each? {
        guard let ordering else { return nil }
        if let localEach { return localEach }
        let made = LocalObservation<Value>.Each(relay: EventRelay(), buffer: ordering.buffer)
        localEach = made
        return made
    }

    /// The value with its version; nil when the actor is gone. In the actor's isolation.
    var snapshot: (value: Value, version: UInt64)? { access.read().map { ($0, version) } }

    var subscriberCount: Int { subscribers.load(ordering: .relaxed) }
    var encodeCount: Int { encodes.load(ordering: .relaxed) }

    var nodeCount: Int { nodes.withLock { $0.count } }
    var isBeingSent: Bool { nodes.withLock { $0.contains { $0.shard === home && $0.isUnderWay } } }
    private func hasNode(_ node: StateNode) -> Bool { nodes.withLock { $0.contains { $0 === node } } }

    /// Whether it goes on as if somebody observed, for who lost a connection: while the server has memory for that.
    var isKept: Bool { memory.isKept(on: home) && memoryBudget?.isExhausted != true }

    func countSubscriber(_ change: Int) { subscribers.add(change, ordering: .relaxed) }

    override var isObserved: Bool { subscriberCount > 0 || nodeCount > 0 || memory.isKept(on: home) }

    override func didChange(version: UInt64) {
        self.version = version
        localVersions?.update(version)
        if let persistence { return persistence.didChange() }
        if ordering != nil { return didChangeOnce() }
        guard !isMarked else { return }
        isMarked = true
        if let home { return home.mark(self) }
        guard isWanted else {
            publish()
            return
        }
        // Behind what the actor does now: the end of a call publishes before.
        access.enter { [weak self] in self?.publishMarked() }
    }

    /// Whether a version would be sent to anybody.
    private var isWanted: Bool { nodeCount > 0 || !filters.current.isEmpty || isKept }

    func publishMarked() { if isMarked { publish() } }

    /// Each change is a version, also within one call.
    private func didChangeOnce() {
        if let localEach, let value = access.read() {
            localEach.relay.send(LocalObservation<Value>.Version(value: value, version: version))
        }
        publish()
    }

    @discardableResult
    func publish() -> Int {
        isMarked = false
        guard published < version, persistence == nil else { return 0 }
        let nodes = self.nodes.withLock { $0 }
        let filters = self.filters.current
        let isKept = nodes.isEmpty && self.isKept
        if nodes.isEmpty, !isKept {
            // A state that knows its changes notes them meanwhile; who comes back gets what it missed.
            if access.takeChanges == nil { forgetLast() } else { last = last?.withoutWhole }
        }
        guard !nodes.isEmpty || !filters.isEmpty || isKept, let value = access.read() else { return 0 }
        guard !nodes.isEmpty || isKept else {
            published = version
            feeding(filters)?()
            return SystemShard.leastEagerBytes
        }
        let event = update(of: value)
        for node in nodes { node.send(event) }
        // After the others' update, whose text they use.
        feeding(filters)?()
        guard case .update(let update) = event else { return 0 }
        return max(update.byteCount, SystemShard.leastEagerBytes)
    }

    func attach(_ node: StateNode) {
        memoryBudget = node.shard.memory
        guard let value = access.read() else { return node.send(.ended) }
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
        if let last, last.sequence == version { event = .update(last) } else { event = encode(value) }
        if case .update(let update) = event { event = .attached(update, history, backlog) }
        guard let persistence else { return node.send(event) }
        let ready = event
        persistence.show(while: { [weak self] in self?.hasNode(node) == true }) { node.send(ready) }
    }

    func detach(_ node: StateNode) {
        nodes.withLock { nodes in
            node.isDetached = true
            nodes.removeAll { $0 === node }
        }
        if node.wasLost { memory.keep(for: node.shard.resumeTime, on: home) }
    }

    /// The actor is gone; called from whatever thread let go of it last.
    override func end() {
        localVersions?.finish()
        localEach?.relay.finish()
        let nodes = self.nodes.withLock { nodes in
            defer { nodes = [] }
            return nodes
        }
        for node in nodes { node.send(.ended) }
        for filter in filters.removeAll() { filter.end() }
    }

    // MARK: Filters

    func show(_ dates: DateForm, _ body: @escaping (FilterableVersion?) -> Void) {
        let current = try? filterable(dates)
        guard let persistence else { return body(current) }
        persistence.show(while: { [weak filters] in filters?.current.isEmpty == false }) { body(current) }
    }

    func enter(_ work: @escaping @Sendable () -> Void) {
        // The executor of an actor with a home is its reactor.
        if let home { home.reactor.run(work) } else { access.enter(work) }
    }

    /// The version of now, encoded once for all filters, and for other observers if they have it already.
    private func filterable(_ dates: DateForm) throws -> FilterableVersion? {
        if let current = filters.version(version, dates) { return current }
        guard let value = access.read() else { return nil }
        let text: SharedBytes
        if dates == .milliseconds, let last, last.sequence == version, let current = last.current {
            text = current
        } else {
            text = try suffix(value, dates)
        }
        let made = FilterableVersion(text, sequence: version, memory: memoryBudget)
        filters.keep(made, dates)
        return made
    }

    /// Hands the version of now to filters when it is called; nil where there are none.
    func feeding(_ filters: [FilteredSource]) -> (() -> Void)? {
        guard !filters.isEmpty else { return nil }
        let list = self.filters
        let feeds = [DateForm.milliseconds, .wholeSeconds].compactMap { dates -> (() -> Void)? in
            let fed = filters.filter { $0.dates == dates }
            guard !fed.isEmpty else { return nil }
            do {
                guard let current = try filterable(dates) else { return nil }
                return { list.feed(current, to: fed) }
            } catch {
                let error = TrebuchetError(.internal, Self.unencodable(error))
                return { for filter in fed { filter.fail(error) } }
            }
        }
        return { for feed in feeds { feed() } }
    }

    // MARK: Encoding

    private static func unencodable(_ error: any Error) -> String {
        "state of type \(Value.self) cannot be encoded: \(describe(error))"
    }

    private func json(_ value: Value, _ dates: DateForm) throws -> ByteBuffer {
        encodes.add(1, ordering: .relaxed)
        var data = ByteBuffer()
        try (home?.coder(writing: dates) ?? ValueCoder(dates: dates)).encode(value, into: &data)
        return data
    }

    func whole() -> StateEvent {
        publish()
        guard let value = access.read() else { return .ended }
        if let last, last.sequence == version, last.current != nil { return .whole(last) }
        do {
            let update = StateUpdate(
                sequence: version, current: try suffix(value),
                patch: last?.sequence == version ? last?.patch : nil, wholeByteCount: wholeByteCount)
            last = update
            return .whole(update)
        } catch {
            return failure(error)
        }
    }

    func requestWhole(for node: StateNode) {
        enter { [weak self] in
            if let self { node.send(self.whole()) }
        }
    }

    /// The current version for all who observe it, or are expected back.
    func update(of value: Value) -> StateEvent {
        published = version
        return encode(value)
    }

    private func encode(_ value: Value) -> StateEvent {
        do {
            let recorded = recordedPatch()
            let current = recorded == nil ? try suffix(value) : nil
            let update = StateUpdate(
                sequence: version, current: current, patch: recorded ?? current.flatMap(comparedPatch),
                wholeByteCount: wholeByteCount)
            last = update
            history.remember(update)
            backlog?.append(update)
            return .update(update)
        } catch {
            return failure(error)
        }
    }

    /// Nobody observes any more.
    func forgetLast() {
        last = nil
        history = PatchHistory()
        backlog?.removeAll()
    }

    private func failure(_ error: any Error) -> StateEvent {
        // Changes may have been taken that nobody gets: what follows is no difference from the version before.
        forgetLast()
        return .failed(TrebuchetError(.internal, Self.unencodable(error)))
    }

    /// The new version as what the state has noted since the last one, when that is smaller than the whole value was.
    private func recordedPatch() -> StateUpdate.Patch? {
        guard let changes = access.takeChanges?(home?.coder ?? ValueCoder()), let last else { return nil }
        var patch = ByteBuffer()
        changes.write(into: &patch)
        guard patch.count + Self.patchOverhead < wholeByteCount else { return nil }
        return message(patch, base: last.sequence)
    }

    /// The new version as the difference from the last one, when that is smaller.
    private func comparedPatch(to current: SharedBytes) -> StateUpdate.Patch? {
        guard access.takeChanges == nil, let last, last.sequence < version, let old = last.data,
            current.count >= Self.smallestPatched
        else { return nil }
        let new = StreamDataParts.data(inSuffix: current.bytes, sequence: version)
        guard new.count > Self.patchOverhead,
            let patch = JSONPatch.difference(from: old, to: new, maximumBytes: new.count - Self.patchOverhead)
        else { return nil }
        var buffer = ByteBuffer(capacity: patch.count)
        patch.withUnsafeBytes { buffer.append($0) }
        return message(buffer, base: last.sequence)
    }

    /// What a message with a patch has more than one with the value.
    private static var patchOverhead: Int { #","base":"#.utf8.count + 20 }

    private func message(_ patch: borrowing ByteBuffer, base: UInt64) -> StateUpdate.Patch {
        var message = ByteBuffer(capacity: patch.count + 128)
        StreamDataParts.appendSuffix(sequence: version, patch: patch.bytes, base: base, into: &message)
        return StateUpdate.Patch(
            base: base, sequence: version, suffix: SharedBytes(message.bytes, countedIn: memoryBudget))
    }

    private func suffix(_ value: Value, _ dates: DateForm = .milliseconds) throws -> SharedBytes {
        let data = try json(value, dates)
        var message = ByteBuffer(capacity: data.count + 128)
        StreamDataParts.appendSuffix(sequence: version, data: data.bytes, into: &message)
        if dates == .milliseconds { wholeByteCount = message.count }
        return SharedBytes(message.bytes, countedIn: memoryBudget)
    }
}

enum StreamEpoch {
    /// Eight random hexadecimal digits.
    static func make() -> String {
        let digits = String(UInt32.random(in: .min ... .max), radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }
}

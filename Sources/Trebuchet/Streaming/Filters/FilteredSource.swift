internal import Bytes
internal import Networking
internal import Relays
internal import Synchronization
internal import TrebuchetWire

/// What one filter makes of a state, for all who observe through it: evaluated once per version, numbered as the state is.
///
/// It is fed in the isolation of the state's actor; an update that has to wait for its interval leaves on the reactor that
/// keeps the time, so everything has a lock.
final class FilteredSource: AnyStateSource, Sendable {
    private struct Version {
        let sequence: UInt64
        let data: [UInt8]
    }

    private struct State {
        var evaluation: FilterEvaluation
        var nodes: [StateNode] = []
        /// Readers in this process.
        var readers: [ObjectIdentifier: StateRelay<RemoteStream.State>] = [:]
        /// The last version that was looked at.
        var seen: UInt64 = 0
        /// What was sent last.
        var latest: Version?
        /// What is to be sent when the interval is over.
        var waiting: Version?
        var nextAt: UInt64 = 0
    }

    let filter: StreamFilter
    let version: ProtocolVersion
    /// They refer to each other as long as somebody observes.
    private let base: any FilterableSource
    private let clock: Reactor
    private let state: Mutex<State>

    /// - Parameter clock: keeps the time of intervals.
    init(_ filter: StreamFilter, version: ProtocolVersion, of base: any FilterableSource, clock: Reactor) {
        self.filter = filter
        self.version = version == .v3 ? .v3 : .v2
        self.base = base
        self.clock = clock
        state = Mutex(State(evaluation: FilterEvaluation(filter)))
    }

    var epoch: String { base.epoch }
    /// Of a state that leaves nothing out too, a filter gives the newest.
    var ordering: StreamOrdering? { nil }
    var home: ReactorShard? { base.home }
    var subscriberCount: Int { base.subscriberCount }
    var encodeCount: Int { base.encodeCount }
    var nodeCount: Int { state.withLock { $0.nodes.count } }

    func countSubscriber(_ change: Int) { base.countSubscriber(change) }
    func publish() -> Int { base.publish() }

    /// Its updates are whole, all of them.
    func whole() -> StateEvent {
        state.withLock { $0.latest }.map { .whole(update($0)) } ?? .failed("a filter has no value yet")
    }

    func requestWhole(for node: StateNode) { node.send(whole()) }

    // MARK: Who observes

    func attach(_ node: StateNode) {
        // Before it begins: whoever looks meanwhile sees that it is used.
        let isAttached = state.withLock { state in
            // The node's last subscriber may have gone before this reached the actor's reactor.
            guard !node.isDetached else { return false }
            if !state.nodes.contains(where: { $0 === node }) { state.nodes.append(node) }
            return true
        }
        guard isAttached else { return endIfUnused() }
        begin()
        if let latest = state.withLock({ $0.latest }) { node.send(.update(update(latest))) }
    }

    func detach(_ node: StateNode) {
        state.withLock { state in
            node.isDetached = true
            state.nodes.removeAll { $0 === node }
        }
        endIfUnused()
    }

    /// Adds a reader in this process, and gives it the value of now. In the actor's isolation.
    func attach(_ reader: StateRelay<RemoteStream.State>) {
        state.withLock { $0.readers[ObjectIdentifier(reader)] = reader }
        begin()
        state.withLock { state in
            guard let latest = state.latest, reader.currentValue.update == nil else { return }
            reader.take(latest.data)
        }
    }

    func detach(_ reader: StateRelay<RemoteStream.State>) {
        _ = state.withLock { $0.readers.removeValue(forKey: ObjectIdentifier(reader)) }
        endIfUnused()
    }

    /// Sees to it that versions come, and that the one of now has.
    private func begin() {
        base.add(self) { current in
            guard let current else { return self.end() }
            current.data.withUnsafeBytes { self.take($0, sequence: current.sequence) }
        }
    }

    /// Asks for no more versions when nobody wants them.
    func endIfUnused() {
        state.withLock { state in
            guard state.nodes.isEmpty, state.readers.isEmpty else { return }
            // Under the lock: who comes meanwhile adds it again after this.
            base.remove(self)
            state = State(evaluation: FilterEvaluation(filter))
        }
    }

    // MARK: Versions

    /// Takes a version of the state, in JSON. In the actor's isolation.
    func take(_ json: UnsafeRawBufferPointer, sequence: UInt64) {
        let now = filter.minimumIntervalMilliseconds == nil ? 0 : MonotonicClock.now
        let version: Version? = state.withLock { state in
            guard sequence > state.seen else { return nil }
            state.seen = sequence
            guard let data = state.evaluation.take(json) else { return nil }
            let version = Version(sequence: sequence, data: data)
            if state.evaluation.skipsEqual, let latest = state.latest, FilterEvaluation.isEqual(latest.data, data) {
                // It is what was sent before the one that waits.
                state.waiting = nil
                return nil
            }
            guard state.nextAt > now else { return note(version, in: &state, at: now) }
            if state.waiting == nil { wake(after: state.nextAt - now) }
            state.waiting = version
            return nil
        }
        if let version { send(version) }
    }

    private func note(_ version: Version, in state: inout State, at now: UInt64) -> Version {
        state.latest = version
        state.waiting = nil
        if let interval = filter.minimumIntervalMilliseconds { state.nextAt = now &+ UInt64(interval) * 1_000_000 }
        for reader in state.readers.values { reader.take(version.data) }
        return version
    }

    private func wake(after nanoseconds: UInt64) {
        clock.execute { [weak self, clock] in
            clock.schedule(after: .nanoseconds(Int64(nanoseconds))) { self?.intervalEnded() }
        }
    }

    private func intervalEnded() {
        let version: Version? = state.withLock { state in
            guard let waiting = state.waiting else { return nil }
            let now = MonotonicClock.now
            guard now >= state.nextAt else {
                // The timer was that of an update which was taken back.
                wake(after: state.nextAt - now)
                return nil
            }
            return note(waiting, in: &state, at: now)
        }
        if let version { send(version) }
    }

    private func send(_ version: Version) {
        let nodes = state.withLock { $0.nodes }
        guard !nodes.isEmpty else { return }
        let update = update(version)
        // Two threads may bring two versions in the other order: a node takes none that is older than its last.
        for node in nodes { node.send(.update(update)) }
    }

    private func update(_ version: Version) -> StateUpdate {
        var message = ByteBuffer(capacity: version.data.count + 128)
        version.data.withUnsafeBytes {
            StreamDataParts.appendSuffix(
                sequence: version.sequence, data: $0, version: self.version, into: &message)
        }
        let suffix = SharedBytes(message.bytes)
        return StateUpdate(
            sequence: version.sequence, current: self.version == .v3 ? suffix : nil,
            legacy: self.version == .v3 ? nil : suffix, patch: nil, wholeByteCount: suffix.count)
    }

    // MARK: The end

    /// The actor is gone.
    func end() { finish(.ended, .failed(TrebuchetError(.actorNotFound, "the actor is gone"))) }

    /// The state could not be encoded.
    func fail(_ message: String) { finish(.failed(message), .failed(TrebuchetError(.internal, message))) }

    private func finish(_ event: StateEvent, _ outcome: StreamOutcome) {
        let (nodes, readers) = state.withLock { state in
            defer {
                state.nodes = []
                state.readers = [:]
            }
            return (state.nodes, state.readers)
        }
        for node in nodes { node.send(event) }
        for reader in readers.values { reader.end(outcome) }
    }
}

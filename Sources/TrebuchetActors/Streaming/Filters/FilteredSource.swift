internal import Bytes
internal import Transports
internal import Relays
internal import Synchronization
internal import TrebuchetWire

/// What one filter makes of a state, for all who observe through it: evaluated once per version, numbered as the state is.
///
/// It is fed in the isolation of the state's actor; an update that has to wait for its interval leaves on the reactor that
/// keeps the time, so everything has a lock. It keeps no text but that of an update that waits: who is new gets what holds
/// now, and is asked for anew.
package final class FilteredSource: AnyStateSource, Sendable {
    private struct State {
        var evaluation: FilterEvaluation
        var nodes: [StateNode] = []
        /// Readers in this process.
        var readers: [ObjectIdentifier: StateRelay<RemoteStream.State>] = [:]
        /// The last version that was looked at, and whether it may be shown.
        var seen: UInt64 = 0
        var holds = false
        /// How it stood when something was sent last, and what that was: there as long as somebody has not taken it.
        var sent: FilterEvaluation?
        var sentSequence: UInt64 = 0
        weak var sentText: SharedBytes?
        /// What is to be sent when the interval is over.
        var waiting: StateUpdate?
        var nextAt: UInt64 = 0
        /// There while its timer is.
        var wakeUp: FilterWakeUp?
    }

    let filter: StreamFilter
    /// How dates are written in what it gives.
    let dates: DateForm
    /// Whether it lets everything through: then it is there for the dates alone, and is no filter to those who count them.
    let isWhole: Bool
    /// In whose shares it counts.
    let bringers: [Party]
    /// They refer to each other as long as somebody observes.
    private let base: any FilterableSource
    private let clock: any EventLoop
    private let state: Mutex<State>

    /// - Parameter clock: keeps the time of intervals.
    init(
        _ filter: StreamFilter, _ dates: DateForm, of base: any FilterableSource, clock: any EventLoop,
        bringers: [Party]
    ) {
        self.filter = filter
        self.dates = dates
        isWhole = filter == StreamFilter()
        self.bringers = isWhole ? [] : bringers
        self.base = base
        self.clock = clock
        state = Mutex(State(evaluation: FilterEvaluation(filter)))
    }

    package var epoch: String { base.epoch }
    package var root: ObjectIdentifier { base.root }
    package var asksForFirst: Bool { true }
    /// Of a state that leaves nothing out too, a filter gives the newest.
    package var ordering: StreamOrdering? { isWhole ? base.ordering : nil }
    package var home: SystemShard? { base.home }
    package var subscriberCount: Int { base.subscriberCount }
    package var encodeCount: Int { base.encodeCount }
    package var nodeCount: Int { state.withLock { $0.nodes.count } }

    package func countSubscriber(_ change: Int) { base.countSubscriber(change) }
    package func publish() -> Int { base.publish() }

    /// Nodes ask for it: there may be nothing to be shown now.
    package func whole() -> StateEvent { .nothing }

    package func requestWhole(for node: StateNode) {
        base.enter { [weak self] in
            guard let self else { return node.send(.ended) }
            self.showNow { node.send($0.map { .whole($0) } ?? .nothing) }
        }
    }

    /// Gives what may be shown of the version of now. In the actor's isolation.
    private func showNow(_ body: @escaping (StateUpdate?) -> Void) {
        base.show(dates) { [self] current in
            guard let current else { return end() }
            let pointer = filter.path ?? ""
            guard base.filters.show(current, to: self, at: pointer) else { return }
            let holds = state.withLock { $0.holds && $0.seen == current.sequence }
            body(holds ? current.update(at: pointer) : nil)
        }
    }

    /// What its readers have not taken, or are to get, with the versions' numbers.
    var held: [(SharedBytes, UInt64)] {
        // What is held of a whole state is counted where the state is.
        if isWhole { return [] }
        return state.withLock { state in
            var held: [(SharedBytes, UInt64)] = []
            if let text = state.sentText { held.append((text, state.sentSequence)) }
            if let waiting = state.waiting, let text = waiting.current { held.append((text, waiting.sequence)) }
            return held
        }
    }

    // MARK: Who observes

    package func attach(_ node: StateNode) {
        // Before it begins: whoever looks meanwhile sees that it is used.
        let isAttached = state.withLock { state in
            // The node's last subscriber may have gone before this reached the actor's reactor.
            guard !node.isDetached else { return false }
            if !state.nodes.contains(where: { $0 === node }) { state.nodes.append(node) }
            return true
        }
        guard isAttached else { return endIfUnused() }
        base.filters.add(self)
        showNow { node.send($0.map { .update($0) } ?? .nothing) }
    }

    package func detach(_ node: StateNode) {
        state.withLock { state in
            node.isDetached = true
            state.nodes.removeAll { $0 === node }
        }
        endIfUnused()
    }

    /// Adds a reader in this process, and gives it the value of now. In the actor's isolation.
    func attach(_ reader: StateRelay<RemoteStream.State>) {
        state.withLock { $0.readers[ObjectIdentifier(reader)] = reader }
        base.filters.add(self)
        showNow { update in
            // It may have come with the others' already.
            if let update, reader.currentValue.update == nil { reader.take(update.data.map { Array($0) }) }
        }
    }

    func detach(_ reader: StateRelay<RemoteStream.State>) {
        _ = state.withLock { $0.readers.removeValue(forKey: ObjectIdentifier(reader)) }
        endIfUnused()
    }

    /// Asks for no more versions when nobody wants them.
    package func endIfUnused() {
        state.withLock { state in
            guard state.nodes.isEmpty, state.readers.isEmpty else { return }
            // Under the lock: who comes meanwhile adds it again after this.
            base.filters.remove(self)
            state.wakeUp?.cancel()
            state = State(evaluation: FilterEvaluation(filter))
        }
    }

    // MARK: Versions

    /// Takes a version of the state. In the actor's isolation.
    ///
    /// - Parameter room: bytes that the state's filters may still hold; one that would need more of them ends.
    func take(_ version: FilterableVersion, room: inout Int) {
        let now = filter.minimumIntervalMilliseconds == nil ? 0 : clock.now
        let pointer = filter.path ?? ""
        var needed = 0
        let update: StateUpdate? = state.withLock { state in
            guard version.sequence > state.seen else { return nil }
            state.seen = version.sequence
            let outcome = version.take(&state.evaluation)
            state.holds = outcome != .refused
            guard outcome == .counts else { return nil }
            if let sent = state.sent, state.evaluation.isSame(as: sent) {
                // It is what was sent before the one that waits.
                state.waiting = nil
                return nil
            }
            needed = version.cost(at: pointer)
            guard needed <= room else { return nil }
            let update = version.update(at: pointer)
            guard state.nextAt > now else { return note(update, in: &state, at: now) }
            if state.wakeUp == nil { state.wakeUp = wake(after: state.nextAt - now) }
            state.waiting = update
            return nil
        }
        guard needed <= room else { return base.filters.endForRoom(self) }
        room -= needed
        if let update { send(update) }
    }

    private func note(_ update: StateUpdate, in state: inout State, at now: UInt64) -> StateUpdate {
        state.sent = state.evaluation
        state.sentSequence = update.sequence
        state.sentText = update.current
        state.waiting = nil
        if let interval = filter.minimumIntervalMilliseconds { state.nextAt = now &+ UInt64(interval) * 1_000_000 }
        if !state.readers.isEmpty, let text = update.data.map({ Array($0) }) {
            for reader in state.readers.values { reader.take(text) }
        }
        return update
    }

    private func wake(after nanoseconds: UInt64) -> FilterWakeUp {
        let wakeUp = FilterWakeUp(on: clock)
        wakeUp.begin(after: nanoseconds) { [weak self] in self?.intervalEnded($0) }
        return wakeUp
    }

    private func intervalEnded(_ wakeUp: FilterWakeUp) {
        let update: StateUpdate? = state.withLock { state in
            guard state.wakeUp === wakeUp else { return nil }
            state.wakeUp = nil
            guard let waiting = state.waiting else { return nil }
            let now = clock.now
            guard now >= state.nextAt else {
                // The timer was that of an update which was taken back.
                state.wakeUp = wake(after: state.nextAt - now)
                return nil
            }
            return note(waiting, in: &state, at: now)
        }
        if let update { send(update) }
    }

    private func send(_ update: StateUpdate) {
        // Two threads may bring two versions in the other order: a node takes none that is older than its last.
        for node in state.withLock({ $0.nodes }) { node.send(.update(update)) }
    }

    // MARK: The end

    /// The actor is gone.
    func end() { finish(.ended, .failed(TrebuchetError(.actorNotFound, "the actor is gone"))) }

    /// It cannot go on: the state cannot be encoded, for one.
    func fail(_ error: TrebuchetError) {
        finish(.failed(error), .failed(error))
        endIfUnused()
    }

    private func finish(_ event: StateEvent, _ outcome: StreamOutcome) {
        let (nodes, readers) = state.withLock { state in
            defer {
                state.nodes = []
                state.readers = [:]
                state.waiting = nil
                state.wakeUp?.cancel()
                state.wakeUp = nil
            }
            return (state.nodes, state.readers)
        }
        for node in nodes { node.send(event) }
        for reader in readers.values { reader.end(outcome) }
    }
}

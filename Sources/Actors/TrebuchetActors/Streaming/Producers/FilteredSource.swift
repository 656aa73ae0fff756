internal import Bytes
internal import Transports
internal import Synchronization
internal import TrebuchetWire

/// A state seen through one filter, for all its subscribers: evaluated once per version, with the numbers of the state.
///
/// It receives versions in the isolation of the state's actor. An update that waits for its interval is sent on the reactor
/// with the timer, so all state is guarded by a lock. It keeps only the text of a waiting update: a new subscriber gets the
/// current value, which is requested again. Two threads may deliver two versions in the wrong order; a broadcaster ignores a
/// version that is older than its last.
///
/// `@unchecked Sendable`: its own properties are constant or guarded by a lock; those of the superclass are documented there.
package final class FilteredSource: StreamProducer, @unchecked Sendable {
    /// The evaluation of the filter, and the updates sent and waiting.
    private struct State {
        var evaluation: FilterEvaluation
        /// The last evaluated version, and whether the filter accepts it.
        var evaluatedVersion: UInt64 = 0
        var isMatch = false
        /// The evaluation of the version that was sent last, and its text, which exists until all subscribers have received it.
        var sent: FilterEvaluation?
        var sentSequence: UInt64 = 0
        weak var sentText: SharedBytes?
        /// The update to send at the end of the interval.
        var waiting: StateUpdate?
        var nextAt: UInt64 = 0
        /// Set while its timer runs.
        var wakeUp: FilterTimer?
    }

    let filter: StreamFilter
    /// The quota scopes in which it counts; empty for a filter that accepts everything, which is a stream of whole values.
    let scopes: [QuotaScope]
    /// The state and its filter refer to each other while there are subscribers.
    private let base: StateSource
    private let clock: any EventLoop
    private let state: Mutex<State>

    /// Creates a filtered source.
    ///
    /// - Parameter clock: the loop with the timers for intervals.
    init(
        _ filter: StreamFilter, of base: StateSource, clock: any EventLoop, scopes: [QuotaScope]
    ) {
        self.filter = filter
        self.scopes = filter.acceptsEverything ? [] : scopes
        self.base = base
        self.clock = clock
        state = Mutex(State(evaluation: FilterEvaluation(filter)))
        // A filter conflates even a state without conflation.
        super.init(
            .filter, home: base.home, buffer: filter.acceptsEverything ? base.buffer : nil, position: 0,
            entry: base.entry,
            origin: base)
    }

    override package func publish() -> Int { base.publish() }

    override func first(for broadcaster: Broadcaster) {
        // Added first, so that a concurrent check sees that it is in use.
        base.filters.addFilter(self)
        provideCurrentVersion { broadcaster.send($0.map { .update($0) } ?? .nothing) }
    }

    override func sendSnapshot(to broadcaster: Broadcaster) {
        provideCurrentVersion { broadcaster.send($0.map { .snapshot($0) } ?? .nothing) }
    }

    /// Passes the current version to `body`, or nil if the filter rejects it. In the actor's isolation.
    private func provideCurrentVersion(_ body: @escaping (StateUpdate?) -> Void) {
        base.provideCurrentVersion(for: self) { [self] outcome in
            switch outcome {
            case .failure(let error): fail(error)
            case .success(nil): endStream()
            case .success(let current?):
                let pointer = filter.path ?? ""
                guard base.filters.passVersion(current, to: self, at: pointer) else { return }
                let (isMatch, evaluated) = state.withLock { ($0.isMatch, $0.evaluatedVersion) }
                // A newer version was shown while this one was evaluated or written.
                guard evaluated <= current.sequence else { return provideCurrentVersion(body) }
                body(isMatch ? current.update(at: pointer) : nil)
            }
        }
    }

    /// The texts that readers have not received or that are waiting, with the versions' numbers.
    var undeliveredTexts: [(SharedBytes, UInt64)] {
        // The memory of a whole state is counted at the state.
        if filter.acceptsEverything { return [] }
        return state.withLock { state in
            var retained: [(SharedBytes, UInt64)] = []
            if let text = state.sentText { retained.append((text, state.sentSequence)) }
            if let waiting = state.waiting, let text = waiting.current { retained.append((text, waiting.sequence)) }
            return retained
        }
    }

    // MARK: Subscriptions

    /// Stops the evaluation of versions when there are no subscribers.
    override package func endIfUnused() {
        whileUnused {
            state.withLock { state in
                // Under both locks, so that a concurrent subscription adds the filter again afterwards.
                base.filters.remove(self)
                state.wakeUp?.cancel()
                state = State(evaluation: FilterEvaluation(filter))
            }
        }
    }

    // MARK: Versions

    /// Receives a version of the state. In the actor's isolation.
    ///
    /// - Parameter room: the number of bytes that the state's filters may still hold; a filter that needs more ends.
    func receiveVersion(_ version: FilterableVersion, room: inout Int) {
        let now = filter.minimumIntervalMilliseconds == nil ? 0 : clock.now
        let pointer = filter.path ?? ""
        var needed = 0
        let update: StateUpdate? = state.withLock { state in
            guard version.sequence > state.evaluatedVersion else { return nil }
            state.evaluatedVersion = version.sequence
            let outcome = version.evaluate(&state.evaluation)
            state.isMatch = outcome != .refused
            guard outcome == .counts else { return nil }
            if let sent = state.sent, state.evaluation.isSame(as: sent) {
                // The value equals the one that was sent before the waiting one.
                state.waiting = nil
                return nil
            }
            needed = version.cost(at: pointer)
            guard needed <= room else { return nil }
            let update = version.update(at: pointer)
            guard state.nextAt > now else { return recordUpdate(update, in: &state, at: now) }
            if state.wakeUp == nil { state.wakeUp = wake(after: state.nextAt - now) }
            state.waiting = update
            return nil
        }
        guard needed <= room else { return base.filters.endForRoom(self) }
        room -= needed
        if let update { broadcast(.update(update)) }
    }

    /// Returns whether a version or a newer one was evaluated.
    func hasEvaluated(_ version: UInt64) -> Bool { state.withLock { $0.evaluatedVersion >= version } }

    /// Computes what the evaluation of a version reads, on any thread: the version has no other user yet.
    func prepare(_ version: FilterableVersion) {
        var evaluation = state.withLock { $0.evaluation }
        if version.evaluate(&evaluation) == .counts { version.prepareUpdate(at: filter.path ?? "") }
    }

    /// Announces that a version is evaluated on another thread.
    func expectEvaluation(of version: UInt64) {
        for broadcaster in current { broadcaster.expectEvaluation(of: version) }
    }

    /// Reports that the evaluation of a version has ended.
    func didEvaluate(_ version: UInt64) { for broadcaster in current { broadcaster.didEvaluate(version) } }

    private func recordUpdate(_ update: StateUpdate, in state: inout State, at now: UInt64) -> StateUpdate {
        state.sent = state.evaluation
        state.sentSequence = update.sequence
        state.sentText = update.current
        state.waiting = nil
        if let interval = filter.minimumIntervalMilliseconds { state.nextAt = now &+ UInt64(interval) * 1_000_000 }
        return update
    }

    private func wake(after nanoseconds: UInt64) -> FilterTimer {
        let wakeUp = FilterTimer(on: clock)
        wakeUp.schedule(after: nanoseconds) { [weak self] in self?.intervalEnded($0) }
        return wakeUp
    }

    private func intervalEnded(_ wakeUp: FilterTimer) {
        let update: StateUpdate? = state.withLock { state in
            guard state.wakeUp === wakeUp else { return nil }
            state.wakeUp = nil
            guard let waiting = state.waiting else { return nil }
            let now = clock.now
            guard now >= state.nextAt else {
                // The timer belonged to an update that was withdrawn.
                state.wakeUp = wake(after: state.nextAt - now)
                return nil
            }
            return recordUpdate(waiting, in: &state, at: now)
        }
        if let update { broadcast(.update(update)) }
    }

    // MARK: The end

    override func endStream() { finish(.ended) }

    /// Ends the filter after an error, such as a state that cannot be encoded.
    func fail(_ error: TrebuchetError) {
        finish(.failed(error))
        endIfUnused()
    }

    private func finish(_ event: StateEvent) {
        state.withLock { state in
            state.waiting = nil
            state.wakeUp?.cancel()
            state.wakeUp = nil
        }
        broadcastEnd(event)
    }
}

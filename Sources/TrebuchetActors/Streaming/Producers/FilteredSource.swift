internal import Bytes
internal import Transports
internal import Synchronization
internal import TrebuchetWire

/// What one filter makes of a state, for all who observe through it: evaluated once per version, numbered as the state is.
///
/// It is fed in the isolation of the state's actor; an update that has to wait for its interval leaves on the reactor that
/// keeps the time, so everything has a lock. It keeps no text but that of an update that waits: who is new gets what holds
/// now, and is asked for anew. Two threads may bring two versions in the other order: a broadcaster takes none that is older than
/// its last.
///
/// `@unchecked Sendable`: its own is constant or has a lock; what is the hub's is said there.
package final class FilteredSource: StreamHub, @unchecked Sendable {
    private struct State {
        var evaluation: FilterEvaluation
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
    private let base: StateSource
    private let clock: any EventLoop
    private let state: Mutex<State>

    /// - Parameter clock: keeps the time of intervals.
    init(
        _ filter: StreamFilter, _ dates: DateForm, of base: StateSource, clock: any EventLoop, bringers: [Party]
    ) {
        self.filter = filter
        self.dates = dates
        isWhole = filter == StreamFilter()
        self.bringers = isWhole ? [] : bringers
        self.base = base
        self.clock = clock
        state = Mutex(State(evaluation: FilterEvaluation(filter)))
        // Of a state that leaves nothing out too, a filter gives the newest.
        super.init(
            .filter, home: base.home, buffer: isWhole ? base.buffer : nil, position: 0, entry: base.entry, origin: base)
    }

    override package func publish() -> Int { base.publish() }

    override func first(for broadcaster: Broadcaster) {
        // Before it begins: whoever looks meanwhile sees that it is used.
        base.filters.add(self)
        showNow { broadcaster.send($0.map { .update($0) } ?? .nothing) }
    }

    override func whole(for broadcaster: Broadcaster) {
        showNow { broadcaster.send($0.map { .whole($0) } ?? .nothing) }
    }

    /// Gives what may be shown of the version of now, which may be nothing. In the actor's isolation.
    private func showNow(_ body: @escaping (StateUpdate?) -> Void) {
        base.show(dates) { [self] outcome in
            switch outcome {
            case .failure(let error): fail(error)
            case .success(nil): end()
            case .success(let current?):
                let pointer = filter.path ?? ""
                guard base.filters.show(current, to: self, at: pointer) else { return }
                let holds = state.withLock { $0.holds && $0.seen == current.sequence }
                body(holds ? current.update(at: pointer) : nil)
            }
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

    /// Asks for no more versions when nobody wants them.
    override package func endIfUnused() {
        whileAlone {
            state.withLock { state in
                // Under both locks: who comes meanwhile adds it again after this.
                base.filters.remove(self)
                state.wakeUp?.cancel()
                state = State(evaluation: FilterEvaluation(filter))
            }
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
        if let update { tell(.update(update)) }
    }

    private func note(_ update: StateUpdate, in state: inout State, at now: UInt64) -> StateUpdate {
        state.sent = state.evaluation
        state.sentSequence = update.sequence
        state.sentText = update.current
        state.waiting = nil
        if let interval = filter.minimumIntervalMilliseconds { state.nextAt = now &+ UInt64(interval) * 1_000_000 }
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
        if let update { tell(.update(update)) }
    }

    // MARK: The end

    override func end() { finish(.ended) }

    /// It cannot go on: the state cannot be encoded, for one.
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
        tell(last: event)
    }
}

internal import Relays

/// How many values wait in front of something that is busy.
public enum BufferingPolicy: Sendable, Hashable {
    /// As many as come.
    case unbounded
    /// The oldest, so many; what comes when they are there is dropped.
    case bufferingOldest(Int)
    /// The newest, so many; the oldest makes room.
    case bufferingNewest(Int)
}

/// Delivers values in a task of its own, in their order; the task lives while there are any.
final class Pump<Value: Sendable>: Sendable {
    private struct State {
        var waiting = Fifo<Value>()
        var isRunning = false
        var isStopped = false
    }

    private let state = Kept(State())
    private let outlet: Outlet<Value>
    private let policy: BufferingPolicy
    private let priority: TaskPriority?
    private let worker = Worker.current

    init(_ outlet: Outlet<Value>, _ policy: BufferingPolicy, priority: TaskPriority? = nil) {
        self.outlet = outlet
        self.policy = policy
        self.priority = priority
    }

    func offer(_ value: Value) {
        let (isFirst, _) = state.withLock { state -> (Bool, Value?) in
            guard !state.isStopped else { return (false, nil) }
            var dropped: Value?
            switch policy {
            case .unbounded: state.waiting.append(value)
            case .bufferingOldest(let limit):
                if state.waiting.count < limit { state.waiting.append(value) }
            case .bufferingNewest(let limit):
                state.waiting.append(value)
                if state.waiting.count > limit { dropped = state.waiting.popFirst() }
            }
            defer { state.isRunning = true }
            return (!state.isRunning, dropped)
        }
        guard isFirst else { return }
        _ = worker.start(priority: priority) { [self] in
            while let value = next() { await outlet.emitAlone(value) }
        }
    }

    /// Drops what waits, and all that comes.
    func stop() {
        _ = state.withLock { state in
            state.isStopped = true
            let waiting = state.waiting
            state.waiting = Fifo()
            return waiting
        }
    }

    private func next() -> Value? {
        state.withLock { state in
            let value = state.waiting.popFirst()
            if value == nil { state.isRunning = false }
            return value
        }
    }
}

extension Stream {
    /// The same values, delivered by a task of its own: whoever sends does not wait for what is below.
    ///
    ///     self        ─1─2─3──────────
    ///     dispatch()  ──1───2───3─────   (each takes a while below)
    ///
    /// This is how a subscriber may send a value up the stream that it hangs on. The current value passes at once when
    /// the chain is built.
    ///
    /// - Parameter bufferingPolicy: which values wait while those below are busy; all, unless you say otherwise.
    nonisolated public func dispatch(
        priority: TaskPriority? = nil, bufferingPolicy: BufferingPolicy = .unbounded
    ) async -> Streams.Derived<Value> {
        let outlet: Outlet<Value> = outletBelow()
        let pump = Pump(outlet, bufferingPolicy, priority: priority)
        return await derive(
            into: outlet, first: { await outlet.emit($0, $1) }, also: [Attachment { pump.stop() }]
        ) { value, _ in pump.offer(value) }
    }
}

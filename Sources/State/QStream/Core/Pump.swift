internal import Relays

/// The limit of values that wait for a busy receiver.
public enum BufferingPolicy: Sendable, Hashable {
    /// Keeps all values.
    case unbounded
    /// Keeps at most this many of the oldest; later values are dropped.
    case bufferingOldest(Int)
    /// Keeps at most this many of the newest; the oldest is dropped.
    case bufferingNewest(Int)
}

/// Delivers values in order in a separate task, which lives while values wait.
final class Pump<Value: Sendable>: Sendable {
    /// The waiting values, and the state of the delivering task.
    private struct State {
        var waiting = Fifo<Value>()
        var isRunning = false
        var isStopped = false
    }

    private let state = OperatorState(State())
    private let outlet: Outlet<Value>
    private let policy: BufferingPolicy
    private let priority: TaskPriority?
    private let worker = OperatorTask.current

    init(_ outlet: Outlet<Value>, _ policy: BufferingPolicy, priority: TaskPriority? = nil) {
        self.outlet = outlet
        self.policy = policy
        self.priority = priority
    }

    func enqueue(_ value: Value) {
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

    /// Drops the waiting values, and all that follow.
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
    /// Returns a stream of the same values, delivered by a separate task: senders do not wait for the streams below.
    ///
    ///     self        ─1─2─3──────────
    ///     dispatch()  ──1───2───3─────   (each takes a while below)
    ///
    /// This lets a subscriber send a value up its own stream. The current value passes at once when the chain is
    /// built.
    ///
    /// - Parameter bufferingPolicy: the values that wait while the streams below are busy. By default all.
    nonisolated public func dispatch(
        priority: TaskPriority? = nil, bufferingPolicy: BufferingPolicy = .unbounded
    ) async -> Streams.Derived<Value> {
        let outlet: Outlet<Value> = outletBelow()
        let pump = Pump(outlet, bufferingPolicy, priority: priority)
        return await derive(
            into: outlet, first: { await outlet.emit($0, $1) }, additional: [Attachment { pump.stop() }]
        ) { value, _ in pump.enqueue(value) }
    }
}

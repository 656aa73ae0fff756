import Synchronization

/// One cancellable part of an effect, from the moment it is returned until it has ended.
final class EffectRegistration: Sendable {
    private enum State {
        case waiting
        case running(@Sendable () -> Void)
        case cancelled
    }

    let id: EffectID
    let position: EffectPosition
    private let state: Mutex<State>

    init(id: EffectID, position: EffectPosition) {
        self.id = id
        self.position = position
        state = Mutex(.waiting)
    }

    /// One that runs already; `cancel` is called once at most.
    init(id: EffectID, position: EffectPosition, cancel: @escaping @Sendable () -> Void) {
        self.id = id
        self.position = position
        state = Mutex(.running(cancel))
    }

    /// Begins the work, unless it was cancelled while it waited.
    func start(priority: TaskPriority?, _ work: @escaping @Sendable () async -> Void) -> Task<Void, Never>? {
        state.withLock { state in
            guard case .waiting = state else { return nil }
            let task = Task(priority: priority) { await work() }
            state = .running { task.cancel() }
            return task
        }
    }

    func cancel() {
        let cancel: (@Sendable () -> Void)? = state.withLock { state in
            defer { state = .cancelled }
            if case .running(let cancel) = state { return cancel }
            return nil
        }
        // Outside of the lock: this runs the cancellation handlers of the work.
        cancel?()
    }
}

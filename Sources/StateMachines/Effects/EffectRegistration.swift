import Synchronization

/// One cancellable part of an effect, from the moment it is returned until it has ended.
final class EffectRegistration: Sendable {
    private enum State {
        case waiting
        case running(Task<Void, Never>)
        case cancelled
    }

    let id: CancelID
    let position: EffectPosition
    private let state = Mutex(State.waiting)

    init(id: CancelID, position: EffectPosition) {
        self.id = id
        self.position = position
    }

    /// Begins the work, unless it was cancelled while it waited.
    func start(priority: TaskPriority?, _ work: @escaping @Sendable () async -> Void) -> Task<Void, Never>? {
        state.withLock { state in
            guard case .waiting = state else { return nil }
            let task = Task(priority: priority) { await work() }
            state = .running(task)
            return task
        }
    }

    func cancel() {
        let task: Task<Void, Never>? = state.withLock { state in
            defer { state = .cancelled }
            if case .running(let task) = state { return task }
            return nil
        }
        // Outside of the lock: this runs the cancellation handlers of the work.
        task?.cancel()
    }
}

internal import Synchronization

/// Executes steps on the main actor, in the order of their submission.
///
/// Separate tasks would not do: tasks that start in order may reach an actor in another order.
enum SettlementQueue {
    /// The waiting steps, under the lock.
    private struct State {
        var waiting: [@MainActor @Sendable () -> Void] = []
        /// True while a task is on its way to the main actor, which executes all steps that wait by then.
        var isScheduled = false
    }

    private static let state = Mutex(State())

    /// Executes the step when the main actor is free: never before this method returns to it.
    static func append(_ step: @escaping @MainActor @Sendable () -> Void) {
        let isFirst = state.withLock { state in
            state.waiting.append(step)
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        if isFirst { Task { @MainActor in settle() } }
    }

    @MainActor
    private static func settle() {
        // Steps submitted meanwhile come in a separate task, behind these, so that the main actor also executes other
        // work.
        let steps = state.withLock { state in
            defer { state = State() }
            return state.waiting
        }
        for step in steps { step() }
    }
}

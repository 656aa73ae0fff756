internal import Synchronization

/// What is to be done on the main actor, in the order in which it was asked for.
///
/// A task for each would not do: nothing promises that tasks which wake up one after the other come to an actor in that order.
enum OrderedSettling {
    private struct State {
        var waiting: [@MainActor @Sendable () -> Void] = []
        /// A task is on its way to the main actor, and takes all that waits by then.
        var isOnItsWay = false
    }

    private static let state = Mutex(State())

    /// Does it when the main actor is free: never before this returns to it.
    static func append(_ step: @escaping @MainActor @Sendable () -> Void) {
        let isFirst = state.withLock { state in
            state.waiting.append(step)
            defer { state.isOnItsWay = true }
            return !state.isOnItsWay
        }
        if isFirst { Task { @MainActor in settle() } }
    }

    @MainActor
    private static func settle() {
        // What is asked for meanwhile comes in a task of its own, behind these: so the main actor gets to other things as well.
        let steps = state.withLock { state in
            defer { state = State() }
            return state.waiting
        }
        for step in steps { step() }
    }
}

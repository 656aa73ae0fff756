package import Synchronization

/// The state that all records of one actor share. An actor may be exposed under several names.
package final class ActorInstance: Sendable {
    // `starting`, `wasCalled` and `separateTaskCalls` are accessed only on the actor's reactor. They are atomic because access to a
    // class property would have a dynamic exclusivity check for each call; relaxed access costs nothing.

    /// The number of calls that were started in a task and are not running yet. Until they run, later calls must not run in
    /// place, or they would overtake the earlier ones.
    package let starting = Atomic<Int>(0)
    /// Set if a call has run in place since the last `consumeUseFlag`.
    package let wasCalled = Atomic<Bool>(false)
    /// The number of next calls that get a separate task, because an earlier call has suspended.
    package let separateTaskCalls = Atomic<UInt8>(0)
    /// Set until the actor has an idle timer. Accessed on the reactor that runs the timer.
    package let isUnwatched = Atomic<Bool>(true)
    /// Set after the actor's `activate()` has run.
    package let hasActivated = Atomic<Bool>(false)
    /// True while the actor's `activate()` runs, also after its time limit.
    package let isActivating = Atomic<Bool>(false)
    private let wasEntered = Atomic<Bool>(true)
    /// The number of calls that run in tasks; far below zero after deactivation.
    private let users = Atomic<Int>(0)
    private static let deactivatedUseCount = Int.min / 2

    package var isDeactivated: Bool { users.load(ordering: .acquiring) < 0 }

    /// Counts a call that is started in a task.
    func didStart() { starting.store(starting.load(ordering: .relaxed) + 1, ordering: .relaxed) }

    /// Counts a started call as running.
    func didBegin() { starting.store(starting.load(ordering: .relaxed) - 1, ordering: .relaxed) }

    /// The number of calls that run in tasks; nil after deactivation.
    package var userCount: Int? {
        let count = users.load(ordering: .acquiring)
        return count < 0 ? nil : count
    }

    /// Counts a call that runs in a task. Returns false after deactivation.
    package func enter() -> Bool {
        if users.add(1, ordering: .acquiringAndReleasing).newValue > 0 {
            wasEntered.store(true, ordering: .relaxed)
            return true
        }
        users.subtract(1, ordering: .acquiringAndReleasing)
        return false
    }

    package func removeUser() { users.subtract(1, ordering: .acquiringAndReleasing) }

    /// Closes the instance for further calls. Returns false if a call runs in a task.
    package func close() -> Bool {
        users.compareExchange(expected: 0, desired: Self.deactivatedUseCount, ordering: .acquiringAndReleasing)
            .exchanged
    }

    /// Closes the instance for further calls, even while calls run in tasks. Returns false if it was closed before.
    package func closeForCalls() -> Bool {
        guard !isDeactivated else { return false }
        return users.add(Self.deactivatedUseCount, ordering: .acquiringAndReleasing).oldValue >= 0
    }

    /// Returns whether the actor was used since the last call of this method, or is in use now.
    package func consumeUseFlag() -> Bool {
        let was = wasCalled.load(ordering: .relaxed) || users.load(ordering: .acquiring) > 0
        wasCalled.store(false, ordering: .relaxed)
        return wasEntered.exchange(false, ordering: .relaxed) || was
    }
}

package import Synchronization

/// What all records of one actor share: it may be exposed under several names.
///
/// `@unchecked Sendable`: `apart` and `isUnwatched` are touched on the reactor that the actor lives on, or not at all; the rest is atomic.
package final class ActorLife: @unchecked Sendable {
    // Atomic, this and `wasCalled`, because another module looks at them for each call, and access to a variable of a class would be
    // checked there: they are touched on the actor's reactor alone.

    /// Calls that have been started in a task and have not begun to run. Until they have, later ones must not run in
    /// place, or they would overtake.
    package let starting = Atomic<Int>(0)
    /// Whether a call has run in place since `takeUse`.
    package let wasCalled = Atomic<Bool>(false)
    /// So many calls yet have tasks of their own, since one has suspended.
    package var apart: UInt8 = 0
    /// Whether nobody looks yet after its rest. On the reactor that is to.
    package var isUnwatched = true
    private let wasEntered = Atomic<Bool>(true)
    /// Calls that run in tasks; far below zero once the actor has been let go.
    private let users = Atomic<Int>(0)
    private static let gone = Int.min / 2

    package var isGone: Bool { users.load(ordering: .acquiring) < 0 }

    /// A call is started in a task.
    func didStart() { starting.store(starting.load(ordering: .relaxed) + 1, ordering: .relaxed) }

    /// It has begun to run.
    func didBegin() { starting.store(starting.load(ordering: .relaxed) - 1, ordering: .relaxed) }

    /// Calls that are under way in tasks; nil once the actor has been let go.
    package var userCount: Int? {
        let count = users.load(ordering: .acquiring)
        return count < 0 ? nil : count
    }

    /// Notes a call that takes time; false when the actor has been let go.
    package func enter() -> Bool {
        if users.add(1, ordering: .acquiringAndReleasing).newValue > 0 {
            wasEntered.store(true, ordering: .relaxed)
            return true
        }
        users.subtract(1, ordering: .acquiringAndReleasing)
        return false
    }

    package func leave() { users.subtract(1, ordering: .acquiringAndReleasing) }

    /// Lets nobody in any more; false when somebody is.
    package func close() -> Bool {
        users.compareExchange(expected: 0, desired: Self.gone, ordering: .acquiringAndReleasing).exchanged
    }

    /// Lets nobody in any more, whoever is; false when that was so before.
    package func end() -> Bool {
        guard !isGone else { return false }
        return users.add(Self.gone, ordering: .acquiringAndReleasing).oldValue >= 0
    }

    /// Whether it was used since this was asked last, or is in use now.
    package func takeUse() -> Bool {
        let was = wasCalled.load(ordering: .relaxed) || users.load(ordering: .acquiring) > 0
        wasCalled.store(false, ordering: .relaxed)
        return wasEntered.exchange(false, ordering: .relaxed) || was
    }
}

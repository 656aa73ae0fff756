internal import Synchronization

/// Counts the owner changes that were sent to a reactor and those that it has handled.
///
/// `@unchecked Sendable`: `told` is atomic, `heard` is used on the reactor only.
final class OwnershipChangeCounter: @unchecked Sendable {
    private let told = Atomic<Int>(0)
    private var heard = 0

    /// Counts a change before it is sent to the reactor. Callable from any thread.
    func willTell() { told.add(1, ordering: .sequentiallyConsistent) }
    func didHear() { heard += 1 }

    /// Whether there are owner changes that the reactor has not handled.
    var areUnheard: Bool { told.load(ordering: .sequentiallyConsistent) != heard }
}

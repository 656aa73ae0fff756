internal import Synchronization

/// Counts the owner changes that were sent to a reactor and those that it has handled.
///
/// `@unchecked Sendable`: `sent` is atomic, `handled` is used on the reactor only.
final class OwnershipChangeCounter: @unchecked Sendable {
    private let sent = Atomic<Int>(0)
    private var handled = 0

    /// Counts a change before it is sent to the reactor. Callable from any thread.
    func willSend() { sent.add(1, ordering: .sequentiallyConsistent) }
    func didHandle() { handled += 1 }

    /// True if there are owner changes that the reactor has not handled.
    var arePending: Bool { sent.load(ordering: .sequentiallyConsistent) != handled }
}

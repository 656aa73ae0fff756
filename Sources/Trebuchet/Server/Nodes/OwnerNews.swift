internal import Synchronization

/// How often a reactor was told who owns a slot, and how often it has heard that.
///
/// `@unchecked Sendable`: `told` is atomic, `heard` is used on the reactor alone.
final class OwnerNews: @unchecked Sendable {
    private let told = Atomic<Int>(0)
    private var heard = 0

    /// From anywhere, before the reactor is told.
    func willTell() { told.add(1, ordering: .sequentiallyConsistent) }
    func didHear() { heard += 1 }

    /// Whether there is an owner that the reactor has not heard of.
    var areUnheard: Bool { told.load(ordering: .sequentiallyConsistent) != heard }
}

internal import Synchronization

/// What runs while a semaphore is locked, as the tasks inside know it.
///
/// A section of a reentrant semaphore has a lock of its own for the sections inside it. They may be those of the same
/// task, of its children, or of any task started inside: all are over before the section is.
final class LockedSection: Sendable {
    @TaskLocal static var current: LockedSection?

    let outer: LockedSection?
    /// What a section inside this one locks.
    let inner = AsyncBinarySemaphore(debugDeadlockDetection: false)
    private let semaphore: AsyncBinarySemaphore
    private let unlocks: AsyncBinarySemaphore
    private let open = Atomic(true)

    /// - Parameter unlocks: what has been locked: the semaphore, or the inner lock of the section around this one.
    init(_ semaphore: AsyncBinarySemaphore, unlocks: AsyncBinarySemaphore, outer: LockedSection?) {
        self.semaphore = semaphore
        self.unlocks = unlocks
        self.outer = outer
    }

    var isOpen: Bool { open.load(ordering: .sequentiallyConsistent) }

    /// The innermost section of the semaphore, from here outwards, that is not over.
    func innermost(of semaphore: AsyncBinarySemaphore) -> LockedSection? {
        var section: LockedSection? = self
        while let this = section {
            if this.semaphore === semaphore, this.isOpen { return this }
            section = this.outer
        }
        return nil
    }

    func run<Result, Failure: Error>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        guard semaphore.isReentrant else {
            defer { unlocks.signalNow() }
            return try await body()
        }
        let result = await Self.$current.withValue(
            self,
            operation: {
                do throws(Failure) {
                    return Swift.Result<Result, Failure>.success(try await body())
                } catch {
                    return Swift.Result<Result, Failure>.failure(error)
                }
            }, isolation: isolation)
        await inner.wait()
        open.store(false, ordering: .sequentiallyConsistent)
        inner.signalNow()
        unlocks.signalNow()
        return try result.get()
    }
}

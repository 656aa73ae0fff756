internal import Synchronization

/// A section that runs while a semaphore is locked, as seen by the tasks inside it.
///
/// A section of a reentrant semaphore has its own lock for the sections inside it. Inner sections may belong to the
/// same task, its children, or any task started inside: all end before the outer section does.
final class LockedSection: Sendable {
    @TaskLocal static var current: LockedSection?

    let outer: LockedSection?
    /// The lock for sections inside this one.
    let inner = AsyncBinarySemaphore(debugDeadlockDetection: false)
    private let semaphore: AsyncBinarySemaphore
    private let unlocks: AsyncBinarySemaphore
    private let open = Atomic(true)

    /// Creates an open section.
    ///
    /// - Parameter unlocks: the locked semaphore: `semaphore` itself, or the inner lock of the enclosing section.
    init(_ semaphore: AsyncBinarySemaphore, unlocks: AsyncBinarySemaphore, outer: LockedSection?) {
        self.semaphore = semaphore
        self.unlocks = unlocks
        self.outer = outer
    }

    var isOpen: Bool { open.load(ordering: .sequentiallyConsistent) }

    /// Returns the innermost open section of the semaphore, from this one outwards.
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

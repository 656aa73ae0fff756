internal import Platform
internal import Synchronization

/// The exclusive right to change a value, for one thread at a time.
///
/// This is the only lock under which a caller's code runs, which is the purpose of `withLock`. Reads do not need it.
struct WriterLock: ~Copyable, Sendable {
    private let lock = Mutex(())
    /// The thread that has the turn, or 0. A thread finds its own number here only if it has the turn.
    private let holder = Atomic<UInt>(0)

    func withLock<Output, Failure: Error>(_ body: () throws(Failure) -> Output) throws(Failure) -> Output {
        let thread = currentThread
        precondition(
            holder.load(ordering: .relaxed) != thread,
            "a shared value was changed inside its own withLock: "
                + "code inside withLock must use the value passed to it")
        var result: Result<Output, Failure>?
        lock.withLock { _ in
            holder.store(thread, ordering: .relaxed)
            result = Result { () throws(Failure) in try body() }
            holder.store(0, ordering: .relaxed)
        }
        // Set by the closure, which the lock calls once. The closure cannot return it, because an output need not be
        // Sendable.
        return try result!.get()
    }
}

internal import Platform
internal import Synchronization

/// The right to change a value: one thread has it at a time.
///
/// The one lock under which a caller's code runs, since that is what `withLock` is for. Reading does not need it.
struct Turn: ~Copyable, Sendable {
    private let lock = Mutex(())
    /// The thread that has the turn, or 0; only the thread itself ever finds its own number here.
    private let holder = Atomic<UInt>(0)

    func take<Output, Failure: Error>(_ body: () throws(Failure) -> Output) throws(Failure) -> Output {
        let thread = currentThread
        precondition(
            holder.load(ordering: .relaxed) != thread,
            "a shared value is changed by the code that is changing it: "
                + "what runs inside withLock must use the value it is given")
        var result: Result<Output, Failure>?
        lock.withLock { _ in
            holder.store(thread, ordering: .relaxed)
            result = Result { () throws(Failure) in try body() }
            holder.store(0, ordering: .relaxed)
        }
        // Set by the closure, which the lock calls once. It may not return it: an output need not be Sendable.
        return try result!.get()
    }
}

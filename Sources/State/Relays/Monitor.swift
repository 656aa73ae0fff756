public import Synchronization

/// A lock, the state that it guards, and the readers that wait until that state changes.
///
/// All waiting for a change happens here, in this module and those above it, so that two rules have one
/// implementation:
/// - A continuation is resumed only after the lock is released: a cancellation handler takes the same lock, and
///   resuming may run it.
/// - Each continuation is resumed exactly once: the code that removes it from the list resumes it.
///
/// Inlinable throughout: without specialization for its value, a read costs ten times as much.
@usableFromInline
package final class Monitor<State: Sendable>: Sendable {
    /// The state and its waiting readers, under one lock.
    @usableFromInline
    struct Guarded: Sendable {
        @usableFromInline var state: State
        @usableFromInline var sleepers = MonitorWaiters()

        @inlinable
        init(state: State) { self.state = state }
    }

    /// The result of a look at the state: a value, or a ticket to wait for the next change.
    @usableFromInline
    enum ReadStep<Result> {
        case ready(Result)
        case sleep(MonitorWaiters.Ticket)
    }

    @usableFromInline let lock: Mutex<Guarded>

    @inlinable
    package init(_ state: State) {
        lock = Mutex(Guarded(state: state))
    }

    /// The number of tasks that wait in `wait` now.
    package var sleeperCount: Int { lock.withLock { $0.sleepers.count } }

    /// Reads or changes the state without waking readers.
    @inlinable
    package func withLock<Result: Sendable, Failure: Error>(
        _ body: (inout State) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try lock.withLock { guarded throws(Failure) in try body(&guarded.state) }
    }

    /// Changes the state. The caller resumes the returned readers when it holds no lock.
    @inlinable
    package func change<Result: Sendable>(_ body: (inout State) -> Result) -> (
        result: Result, woken: MonitorWaiters.Resumptions
    ) {
        lock.withLock { guarded in (body(&guarded.state), guarded.sleepers.takeAll()) }
    }

    /// Waits until `body` returns a value for the state. Returns nil as soon as the task is cancelled.
    ///
    /// `body` runs under the lock, once at first and once after each change.
    @discardableResult
    @inlinable
    package func wait<Result: Sendable>(
        isolation: isolated (any Actor)? = #isolation, for body: (inout State) -> Result?
    ) async -> Result? {
        while !Task.isCancelled {
            let found: ReadStep<Result> = lock.withLock { guarded in
                if let result = body(&guarded.state) { return .ready(result) }
                return .sleep(guarded.sleepers.makeTicket())
            }
            switch found {
            case .ready(let result): return result
            case .sleep(let ticket): await sleep(ticket)
            }
        }
        return nil
    }

    @inlinable
    func sleep(_ ticket: MonitorWaiters.Ticket, isolation: isolated (any Actor)? = #isolation) async {
        await withTaskCancellationHandler {
            // Unsafe instead of checked: it allocates nothing, and only `MonitorWaiters` holds the continuation. The
            // isolation is explicit, because a closure without it runs on no actor: the reader would wake up elsewhere
            // and overtake others.
            await withUnsafeContinuation(isolation: isolation) { continuation in
                let sleeps = lock.withLock { guarded in
                    // Checked under the lock: either the handler below has already run and the flag is set, or it has
                    // yet to take the lock and will find the continuation.
                    !Task.isCancelled && guarded.sleepers.addContinuation(continuation, ticket)
                }
                if !sleeps { continuation.resume() }
            }
        } onCancel: {
            let continuation = lock.withLock { $0.sleepers.remove(ticket) }
            continuation?.resume()
        }
    }
}

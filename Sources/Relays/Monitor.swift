public import Synchronization

/// A lock, the state it guards, and the readers that sleep until that state changes.
///
/// All waiting for a change of something happens here, in this module and above it, so that two rules have one home:
/// a continuation is resumed only after the lock is released (a cancellation handler takes the same lock, and resuming
/// may run it), and each continuation is resumed exactly once (whoever takes it out of the list resumes it).
///
/// Inlinable throughout: not specialised for its value, a read costs ten times as much.
@usableFromInline
package final class Monitor<State: Sendable>: Sendable {
    @usableFromInline
    struct Guarded: Sendable {
        @usableFromInline var state: State
        @usableFromInline var sleepers = Sleepers()

        @inlinable
        init(state: State) { self.state = state }
    }

    @usableFromInline
    enum Look<Result> {
        case ready(Result)
        case sleep(Sleepers.Ticket)
    }

    @usableFromInline let lock: Mutex<Guarded>

    @inlinable
    package init(_ state: State) {
        lock = Mutex(Guarded(state: state))
    }

    /// Tasks that sleep in `wait` right now.
    package var sleeperCount: Int { lock.withLock { $0.sleepers.count } }

    /// Reads or changes the state without waking anybody.
    @inlinable
    package func withLock<Result: Sendable, Failure: Error>(
        _ body: (inout State) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try lock.withLock { guarded throws(Failure) in try body(&guarded.state) }
    }

    /// Changes the state; the caller resumes the readers it gets back once it holds no lock.
    @inlinable
    package func change<Result: Sendable>(_ body: (inout State) -> Result) -> (result: Result, woken: Sleepers.Woken) {
        lock.withLock { guarded in (body(&guarded.state), guarded.sleepers.takeAll()) }
    }

    /// Sleeps until `look` finds what it wants in the state. Returns nil as soon as the task is cancelled.
    ///
    /// `look` runs under the lock, once at first and once after each change.
    @discardableResult
    @inlinable
    package func wait<Result: Sendable>(
        isolation: isolated (any Actor)? = #isolation, for look: (inout State) -> Result?
    ) async -> Result? {
        while !Task.isCancelled {
            let found: Look<Result> = lock.withLock { guarded in
                if let result = look(&guarded.state) { return .ready(result) }
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
    func sleep(_ ticket: Sleepers.Ticket, isolation: isolated (any Actor)? = #isolation) async {
        await withTaskCancellationHandler {
            // Unsafe instead of checked: it allocates nothing, and only `Sleepers` ever holds the continuation. The isolation is
            // named, as a closure that does not is on no actor: the reader would wake up elsewhere, and overtake others on its way.
            await withUnsafeContinuation(isolation: isolation) { continuation in
                let sleeps = lock.withLock { guarded in
                    // Asked under the lock: either the handler below has already run and the flag is up,
                    // or it has yet to take the lock and will find the continuation.
                    !Task.isCancelled && guarded.sleepers.add(continuation, ticket)
                }
                if !sleeps { continuation.resume() }
            }
        } onCancel: {
            let continuation = lock.withLock { $0.sleepers.remove(ticket) }
            continuation?.resume()
        }
    }
}

internal import Synchronization

/// A lock that may be held across suspension points, or a signal from one task to another.
///
///     let lock = AsyncBinarySemaphore()
///     try await lock.withLock { try await encryptAndSend(message) }
///
///     let dataAvailable = AsyncBinarySemaphore(value: false)
///     await dataAvailable.signal()     // the producer
///     await dataAvailable.wait()       // the consumer
///
/// Waiting tasks get the semaphore in the order in which they called. A task that locks twice waits for itself: debug
/// builds trap, unless the semaphore allows reentrancy.
public final class AsyncBinarySemaphore: Sendable {
    /// A task that waits for the semaphore.
    private struct Waiting {
        let number: Int
        let continuation: UnsafeContinuation<Bool, Never>
    }

    /// The state under the lock.
    private struct State {
        var isAvailable: Bool
        var waiting = Fifo<Waiting>()
        var lastNumber = 0
        /// The task that holds the semaphore by `withLock`. The holder by `wait` is unknown.
        var owner: Int?
    }

    private let state: Mutex<State>
    private let allowsReentrancy: Bool
    private let detectsDeadlock: Bool

    /// Creates a semaphore.
    ///
    /// - Parameters:
    ///   - value: whether the semaphore is available at first: true for a lock, false for a signal.
    ///   - allowTaskReentrancy: whether a task that holds the lock, and the tasks that it starts meanwhile, may lock
    ///     again. Such inner sections exclude each other, and all other tasks wait until they are over.
    ///   - debugDeadlockDetection: whether a debug build traps when a task locks twice without being allowed to.
    public init(value: Bool = true, allowTaskReentrancy: Bool = false, debugDeadlockDetection: Bool = true) {
        state = Mutex(State(isAvailable: value))
        allowsReentrancy = allowTaskReentrancy
        detectsDeadlock = debugDeadlockDetection
    }

    /// Takes the semaphore when it is available and no earlier task waits. Ignores cancellation of the task.
    public func wait() async { _ = await acquire(cancellable: false) }

    /// Takes the semaphore when it is available and no earlier task waits. Throws if the task is cancelled first.
    public func waitCancelable() async throws(CancellationError) {
        guard await acquire(cancellable: true) else { throw CancellationError() }
    }

    /// Makes the semaphore available, or hands it to the longest-waiting task. Two signals in a row count as one.
    public func signal() async { signalNow() }

    /// Signals like ``signal()``, for synchronous code.
    public func signalNow() {
        let next = state.withLock { state -> Waiting? in
            state.owner = nil
            let next = state.waiting.popFirst()
            if next == nil { state.isAvailable = true }
            return next
        }
        next?.continuation.resume(returning: true)
    }

    /// The number of waiting tasks.
    package var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// Takes the semaphore. Returns false if the task was cancelled.
    private func acquire(cancellable: Bool) async -> Bool {
        let (isFree, number) = state.withLock { state in
            state.lastNumber += 1
            let isFree = state.isAvailable && !(cancellable && Task.isCancelled)
            if isFree { state.isAvailable = false }
            return (isFree, state.lastNumber)
        }
        if isFree { return true }
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let answer = state.withLock { state -> Bool? in
                    if cancellable, Task.isCancelled { return false }
                    if state.isAvailable {
                        state.isAvailable = false
                        return true
                    }
                    state.waiting.append(Waiting(number: number, continuation: continuation))
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            guard cancellable else { return }
            let waiting = state.withLock { $0.waiting.removeFirst { $0.number == number } }
            waiting?.continuation.resume(returning: false)
        }
    }

    /// Takes the semaphore as a lock. Returns false if the task was cancelled.
    func lock(cancellable: Bool) async -> Bool {
        let task = CurrentTask.identity
        if detectsDeadlock, !allowsReentrancy, state.withLock({ $0.owner == task }) {
            Deadlock.report(
                "a task locked an AsyncBinarySemaphore that it already holds and that does not allow reentrancy",
                "Create it with allowTaskReentrancy: true, or lock it once.")
        }
        guard await acquire(cancellable: cancellable) else { return false }
        state.withLock { $0.owner = task }
        return true
    }

    /// Locks, runs `body` and unlocks. Cancellation of the task does not end the wait.
    public func withLock<Result, Failure: Error>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        // `enter` returns nil only for a cancellable wait.
        let section = await enter(cancellable: false)!
        return try await section.run(body)
    }

    /// Locks, runs `body` and unlocks. Throws `CancellationError` if the task is cancelled while it waits.
    public func withLockCancelable<Result>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
    ) async throws -> Result {
        guard let section = await enter(cancellable: true) else { throw CancellationError() }
        return try await section.run(body)
    }

    /// Locks, runs `body` and unlocks, like ``withLock(isolation:_:)``, for a closure without isolation.
    public func withLockSendable<Result: Sendable, Failure: Error>(
        _ body: @Sendable () async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        try await withLock(isolation: nil, body)
    }

    /// Locks, runs `body` and unlocks, like ``withLockCancelable(isolation:_:)``, for a closure without isolation.
    public func withLockSendableCancelable<Result: Sendable>(
        _ body: @Sendable () async throws -> Result
    ) async throws -> Result {
        try await withLockCancelable(isolation: nil, body)
    }

    private func enter(cancellable: Bool) async -> LockedSection? {
        var outer = allowsReentrancy ? LockedSection.current?.innermost(of: self) : nil
        while let section = outer {
            guard await section.inner.lock(cancellable: cancellable) else { return nil }
            if section.isOpen { return LockedSection(self, unlocks: section.inner, outer: LockedSection.current) }
            // The outer section ended while this one waited.
            section.inner.signalNow()
            outer = section.outer?.innermost(of: self)
        }
        guard await lock(cancellable: cancellable) else { return nil }
        return LockedSection(self, unlocks: self, outer: allowsReentrancy ? LockedSection.current : nil)
    }

    var isReentrant: Bool { allowsReentrancy }
}

internal import Synchronization

/// A lock that may be held while waiting, and a signal from one task to another.
///
///     let lock = AsyncBinarySemaphore()
///     try await lock.withLock { try await encryptAndSend(message) }
///
///     let dataAvailable = AsyncBinarySemaphore(value: false)
///     await dataAvailable.signal()     // the producer
///     await dataAvailable.wait()       // the consumer
///
/// Those who wait get it in the order in which they came. A task that locks twice waits for itself: debug builds trap,
/// unless the semaphore allows reentrancy.
public final class AsyncBinarySemaphore: Sendable {
    private struct Waiting {
        let number: Int
        let continuation: UnsafeContinuation<Bool, Never>
    }

    private struct State {
        var isAvailable: Bool
        var waiting = Fifo<Waiting>()
        var lastNumber = 0
        /// The task that holds it by `withLock`; nobody knows who holds it by `wait`.
        var owner: Int?
    }

    private let state: Mutex<State>
    private let allowsReentrancy: Bool
    private let detectsDeadlock: Bool

    /// - Parameters:
    ///   - value: whether it is available at first: true for a lock, false for a signal.
    ///   - allowTaskReentrancy: whether a task that holds the lock, and the tasks that it starts meanwhile, may lock again.
    ///     Such inner sections exclude each other, and all others wait until they are over.
    ///   - debugDeadlockDetection: whether a debug build traps when a task locks twice without being allowed to.
    public init(value: Bool = true, allowTaskReentrancy: Bool = false, debugDeadlockDetection: Bool = true) {
        state = Mutex(State(isAvailable: value))
        allowsReentrancy = allowTaskReentrancy
        detectsDeadlock = debugDeadlockDetection
    }

    /// Takes it, as soon as it is available and nobody waits in front. Cancelling the task changes nothing.
    public func wait() async { _ = await take(cancellable: false) }

    /// Takes it, as soon as it is available and nobody waits in front. Throws when the task is cancelled before.
    public func waitCancelable() async throws(CancellationError) {
        guard await take(cancellable: true) else { throw CancellationError() }
    }

    /// Makes it available, or hands it to the one who has waited longest. Signalled twice it is available once.
    public func signal() async { signalNow() }

    /// The same from code that is not asynchronous.
    public func signalNow() {
        let next = state.withLock { state -> Waiting? in
            state.owner = nil
            let next = state.waiting.popFirst()
            if next == nil { state.isAvailable = true }
            return next
        }
        next?.continuation.resume(returning: true)
    }

    /// How many tasks wait.
    package var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// False when the task was cancelled.
    private func take(cancellable: Bool) async -> Bool {
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

    /// Takes it as a lock. False when the task was cancelled.
    func lock(cancellable: Bool) async -> Bool {
        let task = CurrentTask.identity
        if detectsDeadlock, !allowsReentrancy, state.withLock({ $0.owner == task }) {
            Deadlock.report(
                "a task locks an AsyncBinarySemaphore that it holds, and that does not allow reentrancy",
                "Make it with allowTaskReentrancy, or lock it once.")
        }
        guard await take(cancellable: cancellable) else { return false }
        state.withLock { $0.owner = task }
        return true
    }

    /// Locks, does the work and unlocks. Cancelling the task does not end the waiting.
    public func withLock<Result, Failure: Error>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        // Not cancellable, so there is a section.
        let section = await enter(cancellable: false)!
        return try await section.run(body)
    }

    /// Locks, does the work and unlocks. Throws `CancellationError` when the task is cancelled while it waits.
    public func withLockCancelable<Result>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
    ) async throws -> Result {
        guard let section = await enter(cancellable: true) else { throw CancellationError() }
        return try await section.run(body)
    }

    /// The same as ``withLock(isolation:_:)``, for work that may run anywhere.
    public func withLockSendable<Result: Sendable, Failure: Error>(
        _ body: @Sendable () async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        try await withLock(isolation: nil, body)
    }

    /// The same as ``withLockCancelable(isolation:_:)``, for work that may run anywhere.
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
            // Over before it was this one's turn.
            section.inner.signalNow()
            outer = section.outer?.innermost(of: self)
        }
        guard await lock(cancellable: cancellable) else { return nil }
        return LockedSection(self, unlocks: self, outer: allowsReentrancy ? LockedSection.current : nil)
    }

    var isReentrant: Bool { allowsReentrancy }
}

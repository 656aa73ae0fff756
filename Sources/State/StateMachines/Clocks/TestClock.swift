import Synchronization

/// A clock that a test advances explicitly.
///
///     let clock = TestClock()
///     let store = TestStore(initialState: Feature.State()) { Feature() } withDependencies: { $0.continuousClock = clock }
///     await store.send(.start)
///     await clock.advance(by: .seconds(1))
///     await store.receive(\.tick) { $0.count = 1 }
public final class TestClock: Clock, Sendable {
    /// An instant, as the time since the clock began.
    public struct Instant: InstantProtocol {
        /// The time since the clock began.
        public let offset: Swift.Duration

        /// Creates an instant.
        ///
        /// - Parameter offset: the time since the clock began. Default: none.
        public init(offset: Swift.Duration = .zero) { self.offset = offset }

        /// Returns the instant after a duration.
        public func advanced(by duration: Swift.Duration) -> Self { Self(offset: offset + duration) }
        /// Returns the duration until another instant.
        public func duration(to other: Self) -> Swift.Duration { other.offset - offset }
        public static func < (left: Self, right: Self) -> Bool { left.offset < right.offset }
    }

    /// The error for unexpected sleepers.
    public struct SuspensionError: Error, CustomStringConvertible {
        /// The number of sleepers.
        public let suspendedTaskCount: Int

        public var description: String {
            "\(suspendedTaskCount) \(suspendedTaskCount == 1 ? "sleeps" : "sleep") on the test clock; advance it, or cancel the work"
        }
    }

    /// A task that sleeps on the clock.
    private struct Sleeper {
        let deadline: Instant
        let continuation: UnsafeContinuation<Bool, Never>
        /// The executor of the effect; nil for a task outside a test store.
        let executor: EffectExecutor?
        let task: Int
    }

    /// The time and the sleepers, under the lock.
    private struct State {
        var now: Instant
        var sleepers: [UInt64: Sleeper] = [:]
        /// Sleepers that were woken and have not continued yet.
        var woken: Set<UInt64> = []
        var lastNumber: UInt64 = 0
    }

    /// The time for a task outside a test store to sleep again.
    private let yieldTimeout: Swift.Duration
    private let state: Mutex<State>

    /// Creates a clock.
    ///
    /// - Parameter now: the initial instant. Default: zero.
    public convenience init(now: Instant = Instant()) { self.init(now: now, yieldTimeout: .milliseconds(20)) }

    init(now: Instant = Instant(), yieldTimeout: Swift.Duration) {
        self.yieldTimeout = yieldTimeout
        state = Mutex(State(now: now))
    }

    /// The current instant.
    public var now: Instant { state.withLock { $0.now } }

    /// Zero: a sleep ends exactly at its deadline.
    public var minimumResolution: Swift.Duration { .zero }

    /// Sleeps until the test has advanced to the deadline. Throws `CancellationError` when the task is cancelled.
    public func sleep(until deadline: Instant, tolerance: Swift.Duration? = nil) async throws {
        try Task.checkCancellation()
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let (executor, task) = (EffectExecutor.current, Self.currentTask)
        let isOver = await withTaskCancellationHandler {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Bool, Never>) in
                let isOver: Bool? = state.withLock { state in
                    // Checked under the lock: either the handler below has run, or it will find the sleeper.
                    if Task.isCancelled { return false }
                    if deadline <= state.now { return true }
                    state.sleepers[number] = Sleeper(
                        deadline: deadline, continuation: continuation, executor: executor, task: task)
                    return nil
                }
                if let isOver { continuation.resume(returning: isOver) }
            }
        } onCancel: {
            state.withLock { $0.sleepers.removeValue(forKey: number) }?.continuation.resume(returning: false)
        }
        state.withLock { _ = $0.woken.remove(number) }
        guard isOver else { throw CancellationError() }
    }

    /// Advances the time, and wakes the sleepers one after another.
    ///
    /// Before the clock advances further, an effect of a ``TestStore`` runs until it has ended or is suspended: it
    /// misses no tick. Another task has 20 ms to sleep again; a slower one misses the ticks in between. Other tasks
    /// run before and after, so that a task that has just begun can sleep first.
    public func advance(by duration: Swift.Duration = .zero) async { await advance(to: now.advanced(by: duration)) }

    /// Advances to an instant, like ``advance(by:)``.
    public func advance(to deadline: Instant) async {
        await yieldToOthers { self.sleeperCount > 0 }
        while let woken = wakeNext(until: deadline) { await yieldToOthers(woken) }
        state.withLock { $0.now = max($0.now, deadline) }
        await yieldToOthers()
    }

    /// Advances until there are no sleepers. A loop that keeps sleeping makes this run forever: cancel it first.
    public func run() async {
        await yieldToOthers { self.sleeperCount > 0 }
        while let woken = wakeNext(until: nil) { await yieldToOthers(woken) }
    }

    /// Throws ``SuspensionError`` when there are sleepers.
    public func checkSuspension() async throws {
        await yieldToOthers()
        let count = sleeperCount
        if count > 0 { throw SuspensionError(suspendedTaskCount: count) }
    }

    /// The number of sleepers.
    var sleeperCount: Int { state.withLock { $0.sleepers.count } }

    /// Wakes the sleeper with the next deadline, unless that is after `deadline`.
    private func wakeNext(until deadline: Instant?) -> Sleeper? {
        let next: Sleeper? = state.withLock { state in
            guard
                let (number, sleeper) = state.sleepers.min(by: {
                    ($0.value.deadline, $0.key) < ($1.value.deadline, $1.key)
                }), deadline.map({ sleeper.deadline <= $0 }) ?? true
            else { return nil }
            state.sleepers[number] = nil
            state.woken.insert(number)
            state.now = max(state.now, sleeper.deadline)
            return sleeper
        }
        next?.continuation.resume(returning: true)
        return next
    }

    /// The deadlines of the sleepers, in order.
    var sleepers: [Swift.Duration] { state.withLock { $0.sleepers.values.map(\.deadline.offset).sorted() } }

    /// Lets waiting tasks run: first the woken ones, background tasks last.
    ///
    /// - Parameter isDone: the condition to stop waiting. The wait is 20 ms at most.
    private func yieldToOthers(_ woken: Sleeper? = nil, until isDone: () -> Bool = { true }) async {
        while state.withLock({ !$0.woken.isEmpty }) { await Task.yield() }
        for executor in executors(with: woken?.executor) { await executor.waitUntilIdle() }
        let end = ContinuousClock.now + yieldTimeout
        var rounds = 0
        while rounds < 20 || !isDone() && ContinuousClock.now < end {
            await Task.detached(priority: .background) { await Task.yield() }.value
            rounds += 1
        }
    }

    private func yieldToOthers(_ woken: Sleeper) async {
        await yieldToOthers(woken) {
            // The state of another task is unknown: it may be suspended elsewhere, or have ended.
            woken.executor != nil || state.withLock { $0.sleepers.values.contains { $0.task == woken.task } }
        }
    }

    /// Returns the executors of the sleeping effects, and another one.
    private func executors(with other: EffectExecutor?) -> [EffectExecutor] {
        var executors = state.withLock { $0.sleepers.values.compactMap(\.executor) }
        if let other { executors.append(other) }
        return executors.reduce(into: []) { found, next in
            if !found.contains(where: { $0 === next }) { found.append(next) }
        }
    }

    private static var currentTask: Int { withUnsafeCurrentTask { $0?.hashValue ?? 0 } }
}

extension Clock where Self == TestClock {
    /// A new clock that a test advances explicitly. Keep it in order to advance it: `let clock = TestClock()`.
    public static var test: Self { TestClock() }
}

import Synchronization

/// A clock that goes on when a test says so.
///
///     let clock = TestClock()
///     let store = TestStore(initialState: Feature.State()) { Feature() } withDependencies: { $0.continuousClock = clock }
///     await store.send(.start)
///     await clock.advance(by: .seconds(1))
///     await store.receive(\.tick) { $0.count = 1 }
public final class TestClock: Clock, Sendable {
    /// A moment, as the time since the clock began.
    public struct Instant: InstantProtocol {
        /// The time since the clock began.
        public let offset: Swift.Duration

        /// - Parameter offset: the time since the clock began. Default: none.
        public init(offset: Swift.Duration = .zero) { self.offset = offset }

        /// The moment after a time.
        public func advanced(by duration: Swift.Duration) -> Self { Self(offset: offset + duration) }
        /// The time until another moment.
        public func duration(to other: Self) -> Swift.Duration { other.offset - offset }
        public static func < (left: Self, right: Self) -> Bool { left.offset < right.offset }
    }

    /// Somebody sleeps who was not expected to.
    public struct StillSleeping: Error, CustomStringConvertible {
        /// How many sleep.
        public let count: Int

        public var description: String {
            "\(count) \(count == 1 ? "sleeps" : "sleep") on the test clock; advance it, or cancel the work"
        }
    }

    private struct Sleeper {
        let deadline: Instant
        let continuation: UnsafeContinuation<Bool, Never>
        /// The executor of the effect; nil for a task outside of a test store.
        let executor: EffectExecutor?
        let task: Int
    }

    private struct State {
        var now: Instant
        var sleepers: [UInt64: Sleeper] = [:]
        /// Those that were woken and have not yet gone on.
        var woken: Set<UInt64> = []
        var lastNumber: UInt64 = 0
    }

    /// The time that a task outside of a test store has until it sleeps again.
    private static let patience = Swift.Duration.milliseconds(20)

    private let state: Mutex<State>

    /// - Parameter now: the moment it begins with. Default: zero.
    public init(now: Instant = Instant()) { state = Mutex(State(now: now)) }

    /// The moment that the test has come to.
    public var now: Instant { state.withLock { $0.now } }

    /// Zero: it wakes at the very moment.
    public var minimumResolution: Swift.Duration { .zero }

    /// Sleeps until the test has come to the moment. Throws `CancellationError` when the task is cancelled.
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
                    // Asked under the lock: either the handler below has run, or it will find the sleeper.
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

    /// Advances the time, and wakes one sleeper after the other.
    ///
    /// Before the clock advances further, an effect of a ``TestStore`` runs until it has ended or is suspended: it misses no tick.
    /// Another task has 20 ms to sleep again; a slower one misses the ticks in between. Other tasks run before and after, so
    /// that a task which has just begun can sleep first.
    public func advance(by duration: Swift.Duration = .zero) async { await advance(to: now.advanced(by: duration)) }

    /// Goes on to a moment, as ``advance(by:)`` does.
    public func advance(to deadline: Instant) async {
        await letOthersRun { self.sleeperCount > 0 }
        while let woken = wakeNext(until: deadline) { await letOthersRun(woken) }
        state.withLock { $0.now = max($0.now, deadline) }
        await letOthersRun()
    }

    /// Goes on until nobody sleeps any more. A loop that sleeps again and again makes it go on for ever: cancel that first.
    public func run() async {
        await letOthersRun { self.sleeperCount > 0 }
        while let woken = wakeNext(until: nil) { await letOthersRun(woken) }
    }

    /// Throws ``StillSleeping`` when somebody sleeps.
    public func checkSuspension() async throws {
        await letOthersRun()
        let count = sleeperCount
        if count > 0 { throw StillSleeping(count: count) }
    }

    /// Who sleeps.
    var sleeperCount: Int { state.withLock { $0.sleepers.count } }

    /// Wakes the one whose moment is next, if it is not after the deadline.
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

    /// When those who sleep are to be woken.
    var sleepers: [Swift.Duration] { state.withLock { $0.sleepers.values.map(\.deadline.offset).sorted() } }

    /// Lets tasks run that wait for their turn: first those that were woken, those of the background last.
    ///
    /// - Parameter isDone: whether to stop waiting. It waits 20 ms at most.
    private func letOthersRun(_ woken: Sleeper? = nil, until isDone: () -> Bool = { true }) async {
        while state.withLock({ !$0.woken.isEmpty }) { await Task.yield() }
        for executor in executors(with: woken?.executor) { await executor.rest() }
        let end = ContinuousClock.now + Self.patience
        var rounds = 0
        while rounds < 20 || !isDone() && ContinuousClock.now < end {
            await Task.detached(priority: .background) { await Task.yield() }.value
            rounds += 1
        }
    }

    private func letOthersRun(_ woken: Sleeper) async {
        await letOthersRun(woken) {
            // The state of another task is not known: it may be suspended elsewhere, or have ended.
            woken.executor != nil || state.withLock { $0.sleepers.values.contains { $0.task == woken.task } }
        }
    }

    /// The executors of the effects that sleep, and another one.
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
    /// A new clock that goes on when a test says so; to advance it, keep it: `let clock = TestClock()`.
    public static var test: Self { TestClock() }
}

internal import Relays

/// Loads once for many calls in quick succession.
///
/// By default the wrapped loader loads after an interval without calls. All callers wait for that load, which
/// continues until the last of them is cancelled. A call during a load does not disturb it. If the load still runs at
/// the end of the call's interval, it is cancelled and a new one replaces it.
///
/// With `executeFirstImmediately` the first call loads at once. It also serves calls that follow within the
/// interval, each counted from the call before. If it has failed, they load after the interval. This suits a refresh;
/// for input that changes between the calls, such as a search, leave it off.
public final class DebouncingLoadable<Base: Loadable>: WrappingLoadable<Base> {
    private let interval: Duration
    private let executesFirstImmediately: Bool
    private let clock: any Clock<Duration>
    private let time: ElapsedTime
    private var lastCall: Duration?
    private var timer: Task<Void, Never>?
    private var callerCount = 0
    private let isBusy = StateRelay(false)

    /// Creates a debouncing loader.
    ///
    /// - Parameters:
    ///   - base: The wrapped loader.
    ///   - debounceInterval: The required time without a call. Default 0.3 seconds.
    ///   - executeFirstImmediately: Whether the first call loads at once. Default false.
    ///   - clock: The clock of the interval.
    public init(
        wrapping base: Base, debounceInterval: Duration = .milliseconds(300), executeFirstImmediately: Bool = false,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        precondition(debounceInterval >= .zero, "an interval cannot be negative: \(debounceInterval)")
        interval = debounceInterval
        executesFirstImmediately = executeFirstImmediately
        self.clock = clock
        time = ElapsedTime(by: clock)
        super.init(wrapping: base)
    }

    /// Creates a debouncing loader with an interval in seconds.
    ///
    /// - Parameters:
    ///   - base: The wrapped loader.
    ///   - debounceInterval: The required time without a call, in seconds.
    ///   - executeFirstImmediately: Whether the first call loads at once. Default false.
    ///   - clock: The clock of the interval.
    public convenience init(
        wrapping base: Base, debounceInterval: Double, executeFirstImmediately: Bool = false,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.init(
            wrapping: base, debounceInterval: .seconds(debounceInterval),
            executeFirstImmediately: executeFirstImmediately, clock: clock)
    }

    /// Records a call. Returns when the load that serves it has ended: its own, or that of a later call.
    public override func load() async {
        guard !isCanceled else { return }
        let now = time.now
        let isFirst = lastCall.map { now - $0 >= interval } ?? true
        lastCall = now
        if !executesFirstImmediately {
            loadAfterInterval()
        } else if isFirst {
            loadNow()
        } else if timer != nil || !(isWorking || currentState.value != nil) {
            loadAfterInterval()
        }
        await waitUntilSettled()
    }

    /// Loads `base`, once for all waiting calls.
    public override func fetch() async throws -> Base.Value { try await loadBase() }

    /// Drops the waiting calls, and cancels like ``BaseLoadable/cancel()``.
    public override func cancel() {
        forgetCalls()
        super.cancel()
    }

    /// Drops the waiting calls, so that the next is the first again, and resets like ``BaseLoadable/reset()``.
    public override func reset() {
        forgetCalls()
        super.reset()
    }

    override func workChanged() {
        let isBusy = timer != nil || isWorking
        if self.isBusy.currentValue != isBusy { self.isBusy.update(isBusy) }
    }

    private func loadNow() {
        timer?.cancel()
        timer = nil
        _ = startRun()
        stopWork(outdatedOnly: true)
    }

    private func loadAfterInterval() {
        timer?.cancel()
        timer = Task {
            try? await clock.sleep(for: interval)
            // A timer that was replaced before it reached the main actor was cancelled there.
            guard !Task.isCancelled else { return }
            loadNow()
        }
        workChanged()
    }

    /// Returns when there is neither a timer nor a load, or when the task is cancelled. The last cancelled caller
    /// stops both.
    private func waitUntilSettled() async {
        callerCount += 1
        for await busy in isBusy.stream where !busy { break }
        callerCount -= 1
        guard Task.isCancelled, callerCount == 0 else { return }
        timer?.cancel()
        timer = nil
        stopWork()
        workChanged()
    }

    private func forgetCalls() {
        timer?.cancel()
        timer = nil
        lastCall = nil
    }
}

/// Loads again when the wrapped loader fails.
///
/// While it waits it shows `Retrying… (attempt 2 of 3)`, or a custom message. `load()` returns after the last attempt,
/// and each `load()` has all its attempts. Cancellation ends the wait as well as the running attempt.
public final class RetryableLoader<Base: Loadable>: WrappingLoadable<Base> {
    private let maxAttempts: Int
    private let backoff: RetryBackoff
    private let clock: any Clock<Duration>
    private let message: @MainActor (_ attempt: Int, _ maxAttempts: Int) -> String?
    private let shouldRetry: @MainActor (any Error) -> Bool

    /// Creates a retrying loader.
    ///
    /// - Parameters:
    ///   - base: The wrapped loader.
    ///   - maxAttempts: The maximum number of attempts, including the first; at least 1.
    ///   - backoff: The delays between attempts: 1 s, 2 s, 4 s and so on, up to a minute.
    ///   - clock: The clock of the delays.
    ///   - shouldRetry: Whether another attempt may help after this error. Default: always.
    ///   - message: The message during the wait for an attempt, in the language of users. Default: `Retrying… (attempt
    ///     2 of 3)`.
    public init(
        wrapping base: Base, maxAttempts: Int = 3, backoff: RetryBackoff = RetryBackoff(),
        clock: any Clock<Duration> = ContinuousClock(),
        shouldRetry: @escaping @MainActor (any Error) -> Bool = { _ in true },
        message: @escaping @MainActor (_ attempt: Int, _ maxAttempts: Int) -> String? = { attempt, maxAttempts in
            "Retrying… (attempt \(attempt) of \(maxAttempts))"
        }
    ) {
        precondition(maxAttempts > 0, "the number of attempts must be at least 1, not \(maxAttempts)")
        self.maxAttempts = maxAttempts
        self.backoff = backoff
        self.clock = clock
        self.message = message
        self.shouldRetry = shouldRetry
        super.init(wrapping: base)
    }

    /// Loads `base` until it succeeds or the attempts are used up. Throws the error of the last one.
    public override func fetch() async throws -> Base.Value {
        let run = LoadOperation.current
        var attempt = 1
        while true {
            do {
                return try await loadBase()
            } catch  where attempt < maxAttempts && !Task.isCancelled && isWanted(run) {
                guard !(error is CancellationError), shouldRetry(error) else { throw error }
            }
            attempt += 1
            updateState(.loading(LoadingProgress(message: message(attempt, maxAttempts))))
            try await pause(for: backoff.delay(beforeAttempt: attempt), run)
        }
    }

    private func isWanted(_ run: LoadOperation?) -> Bool { run?.isCurrent != false }

    /// Waits for the delay, or until the outcome no longer counts.
    private func pause(for delay: Duration, _ run: LoadOperation?) async throws {
        let pause = Task { [clock] in try await clock.sleep(for: delay) }
        run?.whenOutdated = { pause.cancel() }
        defer { run?.whenOutdated = nil }
        try await withTaskCancellationHandler {
            try await pause.value
        } onCancel: {
            pause.cancel()
        }
    }
}

/// Lets only so many loads go on at once; the others wait for their turn, in order.
///
/// Each call of `load()` loads once its turn has come. The state is that of the newest call, so it is loading until
/// that one has its outcome. A call that waits can be cancelled.
public final class ConcurrencyLimitingLoadable<Base: Loadable>: WrappingLoadable<Base> {
    private let limiter: ConcurrencyLimiter

    /// - Parameter concurrencyLimit: How many loads of `base` go on at once; at least 1.
    public convenience init(wrapping base: Base, concurrencyLimit: Int) {
        self.init(wrapping: base, limiter: ConcurrencyLimiter(limit: concurrencyLimit))
    }

    /// - Parameter limiter: Shared with other loaders, or with anything else that has to keep a limit with them.
    public init(wrapping base: Base, limiter: ConcurrencyLimiter) {
        self.limiter = limiter
        super.init(wrapping: base)
    }

    /// Waits for a turn, then loads `base`. Throws what that fails with, and `CancellationError` when the wait is cancelled.
    public override func fetch() async throws -> Base.Value {
        try await limiter.withPermit { try await loadBase() }
    }
}

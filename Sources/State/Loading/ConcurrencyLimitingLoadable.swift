/// Limits the number of concurrent loads. Further loads wait in order.
///
/// Each call of `load()` loads in its turn. The state is that of the newest call, so it is loading until that call has
/// an outcome. A waiting call can be cancelled.
public final class ConcurrencyLimitingLoadable<Base: Loadable>: WrappingLoadable<Base> {
    private let limiter: ConcurrencyLimiter

    /// Creates a loader with its own limiter.
    ///
    /// - Parameter concurrencyLimit: The maximum number of concurrent loads of `base`; at least 1.
    public convenience init(wrapping base: Base, concurrencyLimit: Int) {
        self.init(wrapping: base, limiter: ConcurrencyLimiter(limit: concurrencyLimit))
    }

    /// Creates a loader with a shared limiter.
    ///
    /// - Parameter limiter: Shared with other loaders, or with other users of the same limit.
    public init(wrapping base: Base, limiter: ConcurrencyLimiter) {
        self.limiter = limiter
        super.init(wrapping: base)
    }

    /// Waits for a permit, then loads `base`. Throws the failure of `base`, and `CancellationError` when the wait is
    /// cancelled.
    public override func fetch() async throws -> Base.Value {
        try await limiter.withPermit { try await loadBase() }
    }
}

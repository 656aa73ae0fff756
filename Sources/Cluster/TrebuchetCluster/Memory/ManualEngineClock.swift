internal import Platform
internal import Synchronization

/// A clock that advances only explicitly: for tests of leases without waiting.
public final class ManualEngineClock: Sendable {
    private let passed = Atomic<UInt64>(0)

    /// Creates a clock at 0.
    public init() {}

    /// The milliseconds since the clock's beginning.
    public var milliseconds: UInt64 { passed.load(ordering: .relaxed) }

    /// Advances the clock, by whole milliseconds.
    public func advance(by duration: Duration) {
        passed.wrappingAdd(UInt64(duration.milliseconds), ordering: .relaxed)
    }
}

internal import Platform
internal import Synchronization

/// A clock that stands still until it is turned on: for tests of leases without waiting.
public final class ManualEngineClock: Sendable {
    private let passed = Atomic<UInt64>(0)

    /// A clock at 0.
    public init() {}

    /// Milliseconds since its beginning.
    public var milliseconds: UInt64 { passed.load(ordering: .relaxed) }

    /// Turns it on, by whole milliseconds.
    public func advance(by duration: Duration) {
        passed.wrappingAdd(UInt64(duration.milliseconds), ordering: .relaxed)
    }
}

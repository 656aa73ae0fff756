#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The clock of collections: the time, and sleeping.
package struct CollectionClock: Sendable {
    /// Milliseconds since 1970.
    package var now: @Sendable () -> Int = { Int(Date().timeIntervalSince1970 * 1_000) }
    /// Sleeps; throws when its task is cancelled.
    package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    package init() {}

    package init(
        now: @escaping @Sendable () -> Int, sleep: @escaping @Sendable (Duration) async throws -> Void
    ) {
        self.now = now
        self.sleep = sleep
    }

    /// Limited, because the time of day may be set meanwhile.
    private static let maximumSleep = 60_000

    /// The maximum lead of a collection's times over the clock, in milliseconds. When the clock is set back a little, times do
    /// not go back; when it was far ahead for a while, that has no lasting effect.
    private static let maximumLead = 1_000

    /// Returns the time of a write after one at `time`.
    package static func advance(_ time: Int, to now: Int) -> Int { time - now > maximumLead ? now : max(time, now) }

    /// Returns at that time, in milliseconds since 1970.
    package func sleep(until time: Int) async throws {
        while true {
            let wait = time - now()
            guard wait > 0 else { return }
            try await sleep(.milliseconds(min(wait, Self.maximumSleep)))
        }
    }
}

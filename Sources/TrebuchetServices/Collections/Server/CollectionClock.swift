#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// What time it is for collections, and how they wait.
struct CollectionClock: Sendable {
    /// Milliseconds since 1970.
    var now: @Sendable () -> Int = { Int(Date().timeIntervalSince1970 * 1_000) }
    /// Throws when its task is cancelled.
    var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    /// The time of day may be set meanwhile.
    private static let longestSleep = 60_000

    /// How far the times of a collection may be ahead of the clock, in milliseconds: a clock that is set back a little does not take them
    /// back, and one that was wrong for a while has no lasting effect.
    private static let mostAhead = 60_000

    /// The time of a write after one at `time`.
    static func advance(_ time: Int, to now: Int) -> Int { time - now > mostAhead ? now : max(time, now) }

    /// Returns when it is as late as that, in milliseconds since 1970.
    func sleep(until time: Int) async throws {
        while true {
            let wait = time - now()
            guard wait > 0 else { return }
            try await sleep(.milliseconds(min(wait, Self.longestSleep)))
        }
    }
}

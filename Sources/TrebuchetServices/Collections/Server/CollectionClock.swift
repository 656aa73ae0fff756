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

    /// Returns when it is as late as that, in milliseconds since 1970.
    func sleep(until time: Int) async throws {
        while true {
            let wait = time - now()
            guard wait > 0 else { return }
            try await sleep(.milliseconds(min(wait, Self.longestSleep)))
        }
    }
}

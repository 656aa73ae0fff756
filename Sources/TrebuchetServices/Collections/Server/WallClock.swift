#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The time of day.
enum WallClock {
    /// Milliseconds since 1970.
    static func milliseconds() -> Int { Int(Date().timeIntervalSince1970 * 1_000) }
}

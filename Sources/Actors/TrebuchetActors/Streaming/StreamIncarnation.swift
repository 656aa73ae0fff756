/// A stream incarnation that has ended, because another node continues the stream.
public struct StreamIncarnation: Equatable, Sendable {
    /// The epoch. Version numbers are comparable within one epoch.
    public let epoch: String
    /// The number of the last version, from which the next incarnation continues.
    public let lastVersion: UInt64

    /// Creates an incarnation.
    ///
    /// - Parameters:
    ///   - epoch: its epoch.
    ///   - lastVersion: the number of the version from which the next incarnation continues.
    public init(epoch: String, lastVersion: UInt64) {
        self.epoch = epoch
        self.lastVersion = lastVersion
    }
}

/// Generates epochs.
package enum StreamEpoch {
    /// Returns random hexadecimal digits.
    ///
    /// - Parameter digits: 1 to 15; up to 15 digits need no allocation. Default 8.
    package static func make(digits: Int = 8) -> String {
        let first = UInt64(1) << (4 * UInt64(digits))
        return String(UInt64.random(in: first..<2 * first), radix: 16).suffix(digits).description
    }
}

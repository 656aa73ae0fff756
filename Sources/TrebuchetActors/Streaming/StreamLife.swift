/// A life of a stream that has ended, since another node goes on with it.
public struct StreamLife: Equatable, Sendable {
    /// Numbers of versions can be compared within one.
    public let epoch: String
    /// Of the last version of that life which the next one went on from.
    public let last: UInt64

    /// - Parameters:
    ///   - epoch: its own.
    ///   - last: the number of the version that the next life went on from.
    public init(epoch: String, last: UInt64) {
        self.epoch = epoch
        self.last = last
    }
}

package enum StreamEpoch {
    /// Random hexadecimal digits.
    ///
    /// - Parameter digits: 1 to 15; with up to 15 the text needs no memory of its own. Default 8.
    package static func make(digits: Int = 8) -> String {
        let first = UInt64(1) << (4 * UInt64(digits))
        return String(UInt64.random(in: first..<2 * first), radix: 16).suffix(digits).description
    }
}

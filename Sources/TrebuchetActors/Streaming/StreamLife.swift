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
    /// Eight random hexadecimal digits.
    package static func make() -> String {
        String(UInt64.random(in: 1 << 32..<2 << 32), radix: 16).suffix(8).description
    }
}

internal import Platform

/// The faults of the connections of a link: a pure function of its seed.
package struct FaultSchedule: Sendable {
    /// The direction of bytes through a link.
    package enum Direction: UInt64, Sendable, CaseIterable { case toServer, toClient }

    private let seed: UInt64
    private let faults: FaultyLink.Faults

    package init(seed: UInt64, faults: FaultyLink.Faults) {
        self.seed = seed
        self.faults = faults
    }

    /// Returns the faults of one direction of a connection. Connections are numbered in the order of their acceptance.
    package func faultSequence(ofConnection number: Int, _ direction: Direction) -> FaultSequence {
        // The cut is drawn once for both directions, because it happens in one of them.
        var shared = source(number, salt: 2)
        let cut = cut(&shared)
        return FaultSequence(
            faults, cut: cut?.direction == direction ? cut?.position : nil, source(number, salt: direction.rawValue))
    }

    private func source(_ number: Int, salt: UInt64) -> RandomSource {
        // The first number of a source differs widely from those of its neighbours.
        var mixed = RandomSource(seed: seed ^ (UInt64(number) &* 4 &+ salt))
        return RandomSource(seed: mixed.next())
    }

    private func cut(_ source: inout RandomSource) -> (direction: Direction, position: FaultSequence.Position)? {
        guard let range = faults.cutAfterBytes else { return nil }
        let direction = Direction.allCases.randomElement(using: &source)!
        let offset = Int.random(in: range, using: &source)
        let silence = source.duration(in: faults.halfOpenTime)
        let kind = Double.random(in: 0..<1, using: &source)
        let cut: FaultyLink.Cut =
            switch kind {
            case ..<faults.resets: .reset
            case ..<(faults.resets + faults.halfOpens): .halfOpen(silence)
            case ..<(faults.resets + faults.halfOpens + faults.lateDeliveries): .late(silence)
            default: .inOrder
            }
        return (direction, FaultSequence.Position(offset: offset, cut: cut))
    }
}

/// The faults of one direction of a connection, step by step.
package struct FaultSequence: Sendable {
    /// The next event of a direction.
    package enum Step: Equatable, Sendable {
        /// The next bytes, up to this number, are sent together, or in the groups in which they arrive; later bytes do
        /// not join them.
        case carry(Int)
        case stall(Duration)
        /// The last step.
        case cut(FaultyLink.Cut)
    }

    /// The position and the kind of a cut.
    struct Position: Sendable {
        let offset: Int
        let cut: FaultyLink.Cut
    }

    /// The delay of each byte.
    package let delay: Duration
    private let faults: FaultyLink.Faults
    private let cut: Position?
    private var source: RandomSource
    /// The number of bytes carried before the next step.
    private var offset = 0
    /// The position of the next stall.
    private var stallAt: Int?

    init(_ faults: FaultyLink.Faults, cut: Position?, _ source: RandomSource) {
        var source = source
        delay = faults.delay.map { source.duration(in: $0) } ?? .zero
        stallAt = faults.stallAfterBytes.map { max(1, Int.random(in: $0, using: &source)) }
        self.faults = faults
        self.cut = cut
        self.source = source
    }

    package mutating func next() -> Step {
        if let cut, cut.offset <= offset { return .cut(cut.cut) }
        if let stallAt, let range = faults.stallAfterBytes, stallAt <= offset {
            self.stallAt = offset + max(1, Int.random(in: range, using: &source))
            return .stall(source.duration(in: faults.stallTime))
        }
        var count = faults.chunkBytes.map { max(1, Int.random(in: $0, using: &source)) } ?? 1 << 20
        if let cut { count = min(count, cut.offset - offset) }
        if let stallAt { count = min(count, stallAt - offset) }
        offset += count
        return .carry(count)
    }
}

extension RandomSource {
    /// Returns a uniformly distributed duration, in steps of a microsecond.
    fileprivate mutating func duration(in range: ClosedRange<Duration>) -> Duration {
        let width = Int((range.upperBound - range.lowerBound) / .microseconds(1))
        return range.lowerBound + .microseconds(Int.random(in: 0...width, using: &self))
    }
}

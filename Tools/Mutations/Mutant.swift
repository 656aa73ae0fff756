/// One small mistake that could be made at one place of a source file.
public struct Mutant: Hashable, Sendable {
    public enum Kind: String, CaseIterable, Sendable {
        /// `a < b` became `a >= b`, `a == b` became `a != b`, `a && b` became `a || b`.
        case turned = "a comparison turned"
        /// `a < b` became `a <= b`.
        case moved = "a comparison moved by one"
        case unguarded = "a guard dropped"
        case uncalled = "a call left out"
        case swapped = "a branch swapped"
        case constant = "a constant changed"
    }

    /// Text of the rewritten source: words of its own, or a part of the old source, with the slips in it.
    enum Piece: Hashable, Sendable {
        case text(String)
        case source(Range<Int>)
    }

    public let kind: Kind
    /// Below the repository's root.
    public let file: String
    /// The declarations it stands in, such as `ByteChannel.flush`.
    public let function: String
    /// From 1.
    public let line: Int
    /// What it changes in the plain source, in bytes, and what would stand there instead.
    public let change: Range<Int>
    public let replacement: String
    /// The syntax that the rewritten source replaces, in bytes.
    let range: Range<Int>
    /// What stands there then, with `Mutant.switchMark` where its number belongs.
    let pieces: [Piece]

    /// Stands for the question whether a slip is the one of this process.
    static let switchMark = "\u{1}"

    /// What the slip does to the lines of the plain source.
    public func difference(in source: String) -> LineChange {
        LineChange(of: source, change, replacement)
    }

    /// Orders slips by chance: the same seed always in the same way, whatever else stands in the sources.
    public func rank(seed: UInt64) -> UInt64 {
        var hash = StableHash(seed: seed)
        hash.combine(file)
        hash.combine(function)
        hash.combine(kind.rawValue)
        hash.combine(replacement)
        hash.combine(occurrence)
        return hash.value
    }

    /// Which of the slips that are alike in the same function it is.
    public let occurrence: Int
}

/// FNV-1a, finished with SplitMix64's mixing: the same in every process, as `Hasher` is not.
struct StableHash {
    private var state: UInt64

    init(seed: UInt64) {
        state = 0xcbf2_9ce4_8422_2325
        combine(Int(truncatingIfNeeded: seed))
    }

    mutating func combine(_ text: String) {
        for byte in text.utf8 { state = (state ^ UInt64(byte)) &* 0x100_0000_01b3 }
        state = (state ^ 0xff) &* 0x100_0000_01b3
    }

    mutating func combine(_ number: Int) {
        combine(String(number))
    }

    var value: UInt64 {
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}

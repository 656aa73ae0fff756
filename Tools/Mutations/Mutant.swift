/// One small mistake at one position of a source file.
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

    /// Text of the rewritten source: new text, or a part of the old source with its mutants.
    enum Piece: Hashable, Sendable {
        case text(String)
        case source(Range<Int>)
    }

    public let kind: Kind
    /// Relative to the repository's root.
    public let file: String
    /// The enclosing declarations, such as `ByteChannel.flush`.
    public let function: String
    /// From 1.
    public let line: Int
    /// The changed range of the plain source, in bytes, and its replacement.
    public let change: Range<Int>
    public let replacement: String
    /// The syntax that the rewritten source replaces, in bytes.
    let range: Range<Int>
    /// The replacement, with `Mutant.switchMark` for the mutant's number.
    let pieces: [Piece]

    /// A placeholder for the condition that selects this process's mutant.
    static let switchMark = "\u{1}"

    /// The effect of the mutant on the lines of the plain source.
    public func difference(in source: String) -> LineChange {
        LineChange(of: source, change, replacement)
    }

    /// A pseudo-random order: reproducible for a seed, whatever else the sources contain.
    public func rank(seed: UInt64) -> UInt64 {
        var hash = StableHash(seed: seed)
        hash.combine(file)
        hash.combine(function)
        hash.combine(kind.rawValue)
        hash.combine(replacement)
        hash.combine(occurrence)
        return hash.value
    }

    /// The index among equal mutants of a function.
    public let occurrence: Int
}

/// FNV-1a, finished with SplitMix64's mixing: the same in every process, unlike `Hasher`.
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

internal import Synchronization

/// Tells versions of a value apart: no two that are made get the same mark, but a copy has that of its original.
///
/// Changes say with which mark they begin and end. So an older copy that is put back, or a value made anew, is not taken
/// for the continuation of what was sent.
@usableFromInline
struct ChangeMark: Hashable, Sendable {
    private var number: UInt64

    private static let last = Atomic<UInt64>(0)

    /// A new one.
    init() { number = Self.last.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Of a whole without parts.
    static let none = ChangeMark(number: 0)

    private init(number: UInt64) { self.number = number }

    /// Makes the mark of a whole one that stands for that of another part as well.
    mutating func append(_ part: ChangeMark) {
        var hasher = Hasher()
        hasher.combine(self)
        hasher.combine(part)
        // With the highest bit, which no number that counts ever reaches.
        number = UInt64(bitPattern: Int64(hasher.finalize())) | 1 << 63
    }
}

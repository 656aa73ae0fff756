internal import Synchronization

/// The identity of a version of a value. Each new mark is unique; a copy of a value has the mark of its original.
///
/// Changes carry the marks of the versions that they start and end with. Therefore an older copy or a recreated value does not
/// count as the continuation of the last sent version.
@usableFromInline
struct ChangeStamp: Hashable, Sendable {
    private var number: UInt64

    private static let last = Atomic<UInt64>(0)

    /// Creates a unique mark.
    init() { number = Self.last.wrappingAdd(1, ordering: .relaxed).newValue }

    /// The mark of a composite value without parts.
    static let none = ChangeStamp(number: 0)

    private init(number: UInt64) { self.number = number }

    /// Combines the mark of a composite value with the mark of one more part.
    mutating func append(_ part: ChangeStamp) {
        var hasher = Hasher()
        hasher.combine(self)
        hasher.combine(part)
        // The highest bit separates combined marks from counted ones, which never reach it.
        number = UInt64(bitPattern: Int64(hasher.finalize())) | 1 << 63
    }
}

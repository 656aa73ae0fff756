/// The parts of one version of a state that filters read. Each is located and prepared for comparison once, for any number of
/// filters.
package struct FilterOperands {
    /// A fingerprint that identifies a value without its text.
    struct Fingerprint: Equatable {
        /// A hash of the text.
        let bytes: Int
        /// A hash of the value; nil for invalid JSON.
        let value: Int?
    }

    /// A located part with its cached properties.
    private struct Operand {
        let range: Range<Int>?
        var bytes: Int?
        var mark: Fingerprint?
        var scalar: FilterScalar?
    }

    private var parts: [String: Operand] = [:]

    package init() {}

    /// Locates several parts in one pass.
    package mutating func find(_ pointers: PointerSet, in text: UnsafeRawBufferPointer) {
        guard pointers.pointers.contains(where: { parts[$0] == nil }) else { return }
        for (pointer, range) in pointers.lookup(in: text) where parts[pointer] == nil {
            parts[pointer] = Operand(range: range)
        }
    }

    /// Returns the range of a part, or nil if it does not exist.
    package mutating func range(of pointer: String, in text: UnsafeRawBufferPointer) -> Range<Int>? {
        if let part = parts[pointer] { return part.range }
        let range = pointer.isEmpty ? 0..<text.count : JSONPointer(pointer)?.lookup(in: text)
        parts[pointer] = Operand(range: range)
        return range
    }

    package mutating func part(_ pointer: String, of text: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        range(of: pointer, in: text).map { UnsafeRawBufferPointer(rebasing: text[$0]) }
    }

    /// Returns the fingerprint of a part; `old` is the fingerprint of another version, which may be equal.
    mutating func mark(of pointer: String, in text: UnsafeRawBufferPointer, after old: Fingerprint?) -> Fingerprint {
        let part = part(pointer, of: text)
        if let mark = parts[pointer]?.mark { return mark }
        guard let part else { return Self.none }
        let bytes = parts[pointer]?.bytes ?? Self.hash(part)
        parts[pointer]?.bytes = bytes
        if let old, old.bytes == bytes { return old }
        let mark = Fingerprint(bytes: bytes, value: JSONText.digest(part))
        parts[pointer]?.mark = mark
        return mark
    }

    /// The fingerprint of null, used for an absent part.
    private static let none = Array("null".utf8).withUnsafeBytes {
        Fingerprint(bytes: hash($0), value: JSONText.digest($0))
    }

    private static func hash(_ bytes: UnsafeRawBufferPointer) -> Int {
        var hasher = KeyedHasher()
        hasher.combine(bytes)
        return hasher.finalize()
    }

    /// Returns the part in the form used by conditions; nil if it does not exist.
    mutating func scalar(_ pointer: String, of text: UnsafeRawBufferPointer) -> FilterScalar? {
        guard let part = part(pointer, of: text) else { return nil }
        if let scalar = parts[pointer]?.scalar { return scalar }
        let scalar = FilterScalar(part)
        parts[pointer]?.scalar = scalar
        return scalar
    }
}

extension FilterOperands.Fingerprint {
    /// Returns whether two values are equal; always false for invalid JSON with different text.
    func isSame(as other: Self) -> Bool { bytes == other.bytes || value != nil && value == other.value }
}

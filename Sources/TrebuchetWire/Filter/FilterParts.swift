/// The parts of one version of a state that filters look at: each is looked for once, and once made ready to be compared,
/// however many filters there are.
package struct FilterParts {
    /// What tells one value from another without its text.
    struct Mark: Equatable {
        /// Of the text as it stands.
        let bytes: Int
        /// Of what it says; nil for what is no JSON.
        let value: Int?
    }

    private struct Part {
        let range: Range<Int>?
        var bytes: Int?
        var mark: Mark?
        var scalar: FilterScalar?
    }

    private var parts: [String: Part] = [:]

    package init() {}

    /// Looks for many of them at once.
    package mutating func find(_ pointers: PointerSet, in text: UnsafeRawBufferPointer) {
        guard pointers.pointers.contains(where: { parts[$0] == nil }) else { return }
        for (pointer, range) in pointers.lookup(in: text) where parts[pointer] == nil {
            parts[pointer] = Part(range: range)
        }
    }

    /// Where a part is; nil when there is none.
    package mutating func range(of pointer: String, in text: UnsafeRawBufferPointer) -> Range<Int>? {
        if let part = parts[pointer] { return part.range }
        let range = pointer.isEmpty ? 0..<text.count : JSONPointer(pointer)?.lookup(in: text)
        parts[pointer] = Part(range: range)
        return range
    }

    package mutating func part(_ pointer: String, of text: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        range(of: pointer, in: text).map { UnsafeRawBufferPointer(rebasing: text[$0]) }
    }

    /// The mark of a part; `old` is that of another version, which it may be the same as.
    mutating func mark(of pointer: String, in text: UnsafeRawBufferPointer, after old: Mark?) -> Mark {
        let part = part(pointer, of: text)
        if let mark = parts[pointer]?.mark { return mark }
        guard let part else { return Self.none }
        let bytes = parts[pointer]?.bytes ?? Self.hash(part)
        parts[pointer]?.bytes = bytes
        if let old, old.bytes == bytes { return old }
        let mark = Mark(bytes: bytes, value: JSONText.digest(part))
        parts[pointer]?.mark = mark
        return mark
    }

    /// That of null, which stands for what is not there.
    private static let none = Array("null".utf8).withUnsafeBytes { Mark(bytes: hash($0), value: JSONText.digest($0)) }

    private static func hash(_ bytes: UnsafeRawBufferPointer) -> Int {
        var hasher = Hasher()
        hasher.combine(bytes: bytes)
        return hasher.finalize()
    }

    /// The part as conditions compare it; nil when there is none.
    mutating func scalar(_ pointer: String, of text: UnsafeRawBufferPointer) -> FilterScalar? {
        guard let part = part(pointer, of: text) else { return nil }
        if let scalar = parts[pointer]?.scalar { return scalar }
        let scalar = FilterScalar(part)
        parts[pointer]?.scalar = scalar
        return scalar
    }
}

extension FilterParts.Mark {
    /// Whether two values are the same; never for what is no JSON.
    func isSame(as other: Self) -> Bool { bytes == other.bytes || value != nil && value == other.value }
}

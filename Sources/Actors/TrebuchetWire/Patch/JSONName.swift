/// A string in a text, compared by content and not by notation: `"a"` and `"\u0061"` are equal.
///
/// It points into the text and must not outlive it. Its hash has a random seed, so a peer cannot choose names that collide.
struct JSONName: Hashable {
    /// The bytes between the quotes.
    let bytes: UnsafeRawBufferPointer
    let isEscaped: Bool

    init(_ bytes: UnsafeRawBufferPointer, isEscaped: Bool = false) {
        self.bytes = bytes
        self.isEscaped = isEscaped
    }

    init(_ range: ByteRange, in cursor: JSONCursor) {
        self.init(cursor.bytes(range), isEscaped: range.isEscaped)
    }

    @inline(__always)
    static func == (one: JSONName, other: JSONName) -> Bool {
        if one.isEscaped || other.isEscaped { return one.content == other.content }
        return one.bytes.hasSameBytes(other.bytes)
    }

    func hash(into hasher: inout Hasher) {
        guard isEscaped else { return hasher.combine(bytes: bytes) }
        content.withUnsafeBytes { hasher.combine(bytes: $0) }
    }

    func isEqual(_ text: StaticString) -> Bool {
        isEscaped ? content.withUnsafeBytes { $0.equals(text) } : bytes.equals(text)
    }

    /// The bytes with their quotes; only for a string in a text.
    var quoted: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: bytes.baseAddress.map { $0 - 1 }, count: bytes.count + 2)
    }

    /// The unescaped content in UTF-8.
    var content: [UInt8] { isEscaped ? JSONString.unescaped(bytes) : Array(bytes) }
}

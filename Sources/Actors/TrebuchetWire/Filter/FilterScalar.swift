/// A value in the form used by conditions. Long values are truncated, because the values of conditions are short.
struct FilterScalar {
    /// The kind of a value.
    enum Kind {
        /// The bytes of a string, truncated if it is long.
        case text([UInt8])
        /// A number with its text.
        case number(Double, [UInt8])
        /// An array or object, with its digest if it is short enough to equal a condition's value.
        case container(digest: Int?)
        /// `true`, `false` or `null`
        case literal(UInt8)
        case none
    }

    let kind: Kind
    let hasContent: Bool
    var isNull: Bool { if case .literal(0x6E) = kind { true } else { false } }

    /// The size of JSON above which a value cannot equal a condition's value in any notation.
    private static let longest = 64 * StreamFilter.maximumTextLength

    /// Creates the scalar of a JSON value.
    init(_ value: UnsafeRawBufferPointer) {
        var cursor = JSONCursor(value)
        let first = cursor.peek()
        switch first {
        case 0x22:
            let text = (try? cursor.string()).map { cursor.bytes($0) } ?? UnsafeRawBufferPointer(start: nil, count: 0)
            hasContent = !text.isEmpty
            kind = .text(JSONString.unescaped(Self.prefix(text)))
        case 0x7B, 0x5B:
            cursor.at += 1
            let next = cursor.peek()
            hasContent = next != 0x7D && next != 0x5D
            kind = .container(digest: value.count > Self.longest ? nil : JSONText.digest(value))
        case 0x2D, 0x30...0x39:
            hasContent = false
            let number = (try? cursor.value()).map { Array(cursor.bytes($0)) } ?? []
            kind = Double(String(decoding: number, as: UTF8.self)).map { .number($0, number) } ?? .none
        default:
            hasContent = false
            kind = .literal(first)
        }
    }

    /// Returns a prefix of a string's escaped bytes that is longer than the value of any condition.
    private static func prefix(_ text: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let wanted = 8 * StreamFilter.maximumTextLength
        guard text.count > wanted else { return text }
        var end = 0
        while end < wanted {
            guard text[end] == 0x5C else {
                end += 1
                continue
            }
            guard text[end + 1] == 0x75 else {
                end += 2
                continue
            }
            // The two escapes of a surrogate pair stay together.
            let isHalf = text[end + 2] | 0x20 == 0x64 && [0x38, 0x39, 0x61, 0x62].contains(text[end + 3] | 0x20)
            end += isHalf ? 12 : 6
        }
        return UnsafeRawBufferPointer(rebasing: text[..<end])
    }

    func isEqual(_ other: FilterScalar) -> Bool {
        switch (kind, other.kind) {
        case (.text(let one), .text(let other)): one == other
        case (.number(_, let one), .number(_, let other)): Self.isEqual(one, other)
        case (.container(let one), .container(let other)): one != nil && one == other
        case (.literal(let one), .literal(let other)): one == other
        default: false
        }
    }

    private static func isEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
        one.withUnsafeBytes { one in other.withUnsafeBytes { JSONNumber.isEqual(one, $0) } }
    }

    /// The order of two values.
    enum Order { case less, equal, greater }

    /// Returns the order of two numbers, compared as `Double`; nil for other kinds.
    func numericOrder(_ other: FilterScalar) -> Order? {
        guard case .number(let one, _) = kind, case .number(let other, _) = other.kind else { return nil }
        return one == other ? .equal : one < other ? .less : .greater
    }

    /// Returns the order of two values; nil if they are not comparable.
    func order(_ other: FilterScalar) -> Order? {
        switch (kind, other.kind) {
        case (.text(let one), .text(let other)):
            return one == other ? .equal : one.lexicographicallyPrecedes(other) ? .less : .greater
        case (.number(let one, let text), .number(let other, let otherText)):
            // Numbers are equal if they are equal as decimals. Different numbers with the same Double are unordered.
            if Self.isEqual(text, otherText) { return .equal }
            return one == other ? nil : one < other ? .less : .greater
        default: return nil
        }
    }
}

/// A value as conditions compare it: its beginning is enough, since what it is compared with is short.
struct FilterScalar {
    enum Kind {
        /// The bytes of a text, the first ones of a long one.
        case text([UInt8])
        /// With the number as it stands.
        case number(Double, [UInt8])
        /// An array or object; its value when it is short enough to be what it is compared with.
        case container(digest: Int?)
        /// true, false or null
        case literal(UInt8)
        case none
    }

    let kind: Kind
    let hasContent: Bool
    var isNull: Bool { if case .literal(0x6E) = kind { true } else { false } }

    /// Bytes of a value in JSON beyond which it is no condition's value, whatever way it is written.
    private static let longest = 64 * StreamFilter.longestText

    /// Of a value in JSON.
    init(_ value: UnsafeRawBufferPointer) {
        var cursor = JSONCursor(value)
        let first = cursor.peek()
        switch first {
        case 0x22:
            let text = (try? cursor.string()).map { cursor.bytes($0) } ?? UnsafeRawBufferPointer(start: nil, count: 0)
            hasContent = !text.isEmpty
            kind = .text(JSONString.unescaped(Self.beginning(text)))
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

    /// The first bytes of a string as it is written: they say more than any value of a condition does.
    private static func beginning(_ text: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let wanted = 8 * StreamFilter.longestText
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
            // Two escapes that are one character stay together.
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

    enum Order { case less, equal, greater }

    /// How a number stands to another, as a `Double` tells; nil for what is no number.
    func numericOrder(_ other: FilterScalar) -> Order? {
        guard case .number(let one, _) = kind, case .number(let other, _) = other.kind else { return nil }
        return one == other ? .equal : one < other ? .less : .greater
    }

    /// How it stands to another; nil when they cannot be compared.
    func order(_ other: FilterScalar) -> Order? {
        switch (kind, other.kind) {
        case (.text(let one), .text(let other)):
            return one == other ? .equal : one.lexicographicallyPrecedes(other) ? .less : .greater
        case (.number(let one, let text), .number(let other, let otherText)):
            // Equal is what is equal as decimals; beyond what a Double tells apart, numbers are neither more nor less.
            if Self.isEqual(text, otherText) { return .equal }
            return one == other ? nil : one < other ? .less : .greater
        default: return nil
        }
    }
}

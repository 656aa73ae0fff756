internal import Bytes
#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// Checks in one pass, without a copy, whether a text is the canonical JSON that this module writes. A method returns false or nil
/// for any other text, which a `JSONCursor` then reads or refuses with an error. So the text may come from anywhere.
package struct CanonicalReader {
    private let text: UnsafeRawBufferPointer
    private var at = 0
    /// Reads strings.
    private var cursor: JSONCursor
    /// The deepest nesting so far, and whether there was a number as in ``JSONObjectParts/hasWideNumbers``.
    private var deepest = 0
    private var hasWideNumbers = false

    /// More digits may be outside the range of `Int64`.
    private static let maximumDigits = 18
    /// Deeper values have been refused.
    private static let maximumDepth = JSONValue.maximumDepth

    package init(_ text: UnsafeRawBufferPointer) {
        self.text = text
        cursor = JSONCursor(text)
    }

    package var isAtEnd: Bool { at == text.count }

    @inline(__always)
    mutating func consume(_ byte: UInt8) -> Bool {
        guard at < text.count, text[at] == byte else { return false }
        at &+= 1
        return true
    }

    package mutating func consume(_ literal: StaticString) -> Bool {
        let count = literal.utf8CodeUnitCount
        guard count <= text.count - at, memcmp(text.baseAddress.unsafelyUnwrapped + at, literal.utf8Start, count) == 0
        else { return false }
        at &+= count
        return true
    }

    /// Reads an integer of few digits.
    package mutating func integer() -> Int? {
        let start = at
        guard wholeNumber() else { return nil }
        return JSONNumber.int(UnsafeRawBufferPointer(rebasing: text[start..<at]))
    }

    /// Reads a string without escapes; returns its bytes between the quotes.
    package mutating func plainString() -> UnsafeRawBufferPointer? {
        guard let range = string(), !range.isEscaped else { return nil }
        return UnsafeRawBufferPointer(rebasing: text[range.inside])
    }

    /// Reads an object without members that are null, and its index; returns its text.
    package mutating func object(_ index: inout JSONObjectIndex) -> UnsafeRawBufferPointer? {
        let start = at
        (deepest, hasWideNumbers) = (0, false)
        index.positions.removeAll(keepingCapacity: true)
        let isObject = members(depth: 1) { name, value in
            index.positions.append(UInt32(truncatingIfNeeded: name - start))
            index.positions.append(UInt32(truncatingIfNeeded: value - start))
        }
        guard isObject else { return nil }
        (index.depth, index.hasWideNumbers) = (deepest, hasWideNumbers)
        return UnsafeRawBufferPointer(rebasing: text[start..<at])
    }

    @inline(__always)
    private mutating func members(depth: Int, _ didFind: (_ name: Int, _ value: Int) -> Void) -> Bool {
        guard depth <= Self.maximumDepth, consume(UInt8(ascii: "{")) else { return false }
        deepest = max(deepest, depth)
        if consume(UInt8(ascii: "}")) { return true }
        var last: Range<Int>?
        repeat {
            guard let name = string(), !name.isEscaped, consume(UInt8(ascii: ":")), at < text.count,
                depth > 1 || text[at] != UInt8(ascii: "n")
            else { return false }
            if let last {
                let order = CanonicalJSON.compareBytes(
                    UnsafeRawBufferPointer(rebasing: text[last]), UnsafeRawBufferPointer(rebasing: text[name.inside]))
                guard order < 0 else { return false }
            }
            last = name.inside
            didFind(name.inside.lowerBound, at)
            guard value(depth: depth) else { return false }
        } while consume(UInt8(ascii: ","))
        return consume(UInt8(ascii: "}"))
    }

    /// - Parameter depth: the number of objects and arrays around the value.
    private mutating func value(depth: Int) -> Bool {
        guard at < text.count else { return false }
        switch text[at] {
        case UInt8(ascii: "\""): return string() != nil
        case UInt8(ascii: "{"): return members(depth: depth + 1) { _, _ in }
        case UInt8(ascii: "["): return array(depth: depth + 1)
        case UInt8(ascii: "t"): return consume("true")
        case UInt8(ascii: "f"): return consume("false")
        case UInt8(ascii: "n"): return consume("null")
        default: return number()
        }
    }

    private mutating func array(depth: Int) -> Bool {
        guard depth <= Self.maximumDepth, consume(UInt8(ascii: "[")) else { return false }
        deepest = max(deepest, depth)
        if consume(UInt8(ascii: "]")) { return true }
        repeat {
            guard value(depth: depth) else { return false }
        } while consume(UInt8(ascii: ","))
        return consume(UInt8(ascii: "]"))
    }

    // MARK: Numbers

    private mutating func number() -> Bool {
        let start = at
        if wholeNumber() { return true }
        at = start
        while at < text.count, Self.isPartOfNumber(text[at]) { at += 1 }
        let bytes = UnsafeRawBufferPointer(rebasing: text[start..<at])
        var cursor = JSONCursor(bytes)
        guard (try? cursor.value()) != nil, (try? cursor.expectEnd()) != nil,
            let value = try? JSONValue.scalar(bytes)
        else { return false }
        var written = ByteBuffer()
        value.write(json: &written)
        guard written.bytes.hasSameBytes(bytes) else { return false }
        var scan = CanonicalJSON.Scan()
        _ = scan.end(ofValueAt: 0, bytes)
        hasWideNumbers = hasWideNumbers || scan.hasWideNumbers
        return true
    }

    private static func isPartOfNumber(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."),
            UInt8(ascii: "e"), UInt8(ascii: "E"):
            true
        default: false
        }
    }

    /// Reads an integer of few digits; returns false for any other number.
    private mutating func wholeNumber() -> Bool {
        let isNegative = consume(UInt8(ascii: "-"))
        let start = at
        while at < text.count, text[at] &- 0x30 < 10 { at &+= 1 }
        let count = at - start
        guard count > 0, count <= Self.maximumDigits, text[start] != 0x30 || count == 1 && !isNegative else {
            return false
        }
        return at == text.count || !Self.isPartOfNumber(text[at])
    }

    // MARK: Strings

    /// Reads a string.
    @inline(__always)
    private mutating func string() -> (inside: Range<Int>, isEscaped: Bool)? {
        guard at < text.count, text[at] == UInt8(ascii: "\"") else { return nil }
        cursor.at = at
        guard let range = try? cursor.string() else { return nil }
        let inside = at + 1..<cursor.at - 1
        at = cursor.at
        let bytes = UnsafeRawBufferPointer(rebasing: text[inside])
        guard Self.isASCII(bytes) || String(validating: bytes, as: UTF8.self) != nil,
            !range.isEscaped || isWritten(range, bytes)
        else { return nil }
        return (inside, range.isEscaped)
    }

    private static func isASCII(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var (at, bits) = (0, UInt64(0))
        while at &+ 8 <= bytes.count {
            bits |= bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self)
            at &+= 8
        }
        while at < bytes.count {
            bits |= UInt64(bytes[at])
            at &+= 1
        }
        return bits & 0x8080_8080_8080_8080 == 0
    }

    /// Returns whether the escapes of a string are those which are written.
    private func isWritten(_ range: ByteRange, _ bytes: UnsafeRawBufferPointer) -> Bool {
        var written = ByteBuffer()
        JSONString.append(cursor.text(range), to: &written)
        return UnsafeRawBufferPointer(rebasing: written.bytes[1..<written.count - 1]).hasSameBytes(bytes)
    }
}

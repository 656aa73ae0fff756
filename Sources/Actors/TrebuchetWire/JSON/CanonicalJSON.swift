package import Bytes
#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif
internal import Platform

/// Canonical JSON text: without white space, with member names sorted by their bytes, and with one form for each string and
/// number. Equal values have equal texts.
///
/// Functions that take canonical text do not validate it.
@usableFromInline
package enum CanonicalJSON {
    // MARK: Reading

    /// Returns the index behind a string that begins at `start`.
    @inline(__always)
    package static func endOfString(_ start: Int, _ text: UnsafeRawBufferPointer) -> Int {
        let base = text.baseAddress.unsafelyUnwrapped
        var at = start + 1
        while let found = memchr(base + at, 0x22, text.count - at) {
            let quote = UnsafeRawPointer(found) - base
            var before = quote
            while text[before - 1] == 0x5C { before -= 1 }
            // Between two quotes, an even number of backslashes is escaped backslashes.
            if (quote - max(before, start + 1)) & 1 == 0 { return quote + 1 }
            at = quote + 1
        }
        return text.count
    }

    /// Returns the text of a string between its quotes.
    package static func string(_ inside: UnsafeRawBufferPointer) -> String {
        JSONString.text(inside, isEscaped: isEscaped(inside))
    }

    package static func isEscaped(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let base = bytes.baseAddress else { return false }
        return memchr(base, 0x5C, bytes.count) != nil
    }

    /// The text of a string without its quotes.
    @inlinable
    package static func inside(_ string: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: string[1..<string.count - 1])
    }

    /// Compares two names, or the texts of two strings between their quotes, by the bytes of the decoded strings.
    ///
    /// Canonical texts have one form for each string, so the first difference decides. The comparison reads no further,
    /// because many short names are compared with a long one.
    package static func compareNames(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Int {
        let at = firstDifference(one, other)
        guard at < one.count, at < other.count else { return one.count - other.count }
        let start = startOfEscape(around: at, in: one)
        return Int(decodedByte(at: start, one)) - Int(decodedByte(at: start, other))
    }

    @inline(__always)
    package static func compareBytes(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Int {
        let both = min(one.count, other.count)
        if both > 0 {
            let order = memcmp(
                one.baseAddress.unsafelyUnwrapped, other.baseAddress.unsafelyUnwrapped, both)
            if order != 0 { return Int(order) }
        }
        return one.count - other.count
    }

    /// Finds the end of a value, and what its header needs.
    @usableFromInline
    package struct Scan {
        package private(set) var depth = 0
        package private(set) var hasWideNumbers = false

        @usableFromInline
        package init() {}

        /// Returns the index behind a value.
        @usableFromInline
        package mutating func end(ofValueAt start: Int, _ text: UnsafeRawBufferPointer) -> Int {
            var at = start
            var open = 0
            while at < text.count {
                switch text[at] {
                case UInt8(ascii: "\""):
                    at = CanonicalJSON.endOfString(at, text)
                    if open == 0 { return at }
                    continue
                case UInt8(ascii: "{"), UInt8(ascii: "["):
                    open += 1
                    depth = max(depth, open)
                case UInt8(ascii: "}"), UInt8(ascii: "]"):
                    // The end of the object or array around a number or literal.
                    if open == 0 { return at }
                    open -= 1
                    if open == 0 { return at + 1 }
                case UInt8(ascii: ","): if open == 0 { return at }
                case UInt8(ascii: "+"): hasWideNumbers = true
                case UInt8(ascii: "."):
                    if at + 1 < text.count, text[at + 1] == UInt8(ascii: "0") { hasWideNumbers = true }
                default: break
                }
                at += 1
            }
            return at
        }
    }

    /// Calls `body` with each element of an array until it returns a result other than nil, and returns that.
    @inlinable
    package static func firstElement<Result>(
        _ array: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Result?
    ) rethrows -> Result? {
        var at = 1
        while array[at] != UInt8(ascii: "]") {
            if array[at] == UInt8(ascii: ",") { at += 1 }
            var scan = Scan()
            let end = scan.end(ofValueAt: at, array)
            if let result = try body(UnsafeRawBufferPointer(rebasing: array[at..<end])) { return result }
            at = end
        }
        return nil
    }

    /// Calls `body` with each element of an array, from an index on, until it returns false.
    ///
    /// - Parameter start: 1, or the result of an earlier call.
    /// - Returns: the index of the rest; nil when `body` was true for all elements.
    @inlinable
    package static func elements(
        of array: UnsafeRawBufferPointer, from start: Int, _ body: (UnsafeRawBufferPointer) -> Bool
    ) -> Int? {
        var at = start
        while array[at] != UInt8(ascii: "]") {
            if array[at] == UInt8(ascii: ",") { at += 1 }
            var scan = Scan()
            let end = scan.end(ofValueAt: at, array)
            let element = UnsafeRawBufferPointer(rebasing: array[at..<end])
            at = end
            if !body(element) { return at }
        }
        return nil
    }

    static func eachElement(
        of array: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Void
    ) rethrows {
        _ = try firstElement(array) { (element) throws -> Void? in
            try body(element)
            return nil
        }
    }

    /// Returns the value of a member, nil when there is none or the value is no object.
    ///
    /// - Parameter name: as in the text.
    package static func member(_ name: UnsafeRawBufferPointer, of object: UnsafeRawBufferPointer)
        -> UnsafeRawBufferPointer?
    {
        guard isObject(object) else { return nil }
        var members = CanonicalMembers(object, of: 0)
        while let found = members.name {
            let end = members.valueEnd()
            if found.hasSameBytes(name) { return members.value(to: end) }
            members.advance(behind: end)
        }
        return nil
    }

    /// Returns the index of the first occurrence of these bytes.
    ///
    /// - Parameter anchor: the index of the byte that is rarest in texts.
    package static func firstIndex(of bytes: [UInt8], anchor: Int, in text: UnsafeRawBufferPointer) -> Int? {
        guard let base = text.baseAddress else { return nil }
        var at = anchor
        while at < text.count, let found = memchr(base + at, Int32(bytes[anchor]), text.count - at) {
            let start = UnsafeRawPointer(found) - base - anchor
            if start + bytes.count <= text.count, memcmp(base + start, bytes, bytes.count) == 0 { return start }
            at = start + anchor + 1
        }
        return nil
    }

    /// Returns the number of members of all objects in a value.
    package static func memberCount(_ text: UnsafeRawBufferPointer) -> Int {
        var (at, count) = (0, 0)
        while at < text.count {
            switch text[at] {
            case UInt8(ascii: "\""): at = endOfString(at, text)
            case UInt8(ascii: ":"):
                count += 1
                at += 1
            default: at += 1
            }
        }
        return count
    }

    static let null = Array("null".utf8)

    @inlinable package static func isNull(_ value: UnsafeRawBufferPointer) -> Bool { value[0] == UInt8(ascii: "n") }
    @inlinable package static func isObject(_ value: UnsafeRawBufferPointer) -> Bool { value[0] == UInt8(ascii: "{") }

    // MARK: Writing

    /// The treatment of what a canonical text cannot have.
    package enum Reading {
        /// A number becomes an `Int64` or the nearest `Double`. One outside their range is an error, as a duplicate member name is.
        case rounded
        /// As `rounded`, but a number that neither of them equals stays as it is written.
        case exact
        /// All numbers stay as they are written. The last of several members with the same name is used.
        case written
    }

    /// Reads any JSON value and appends its canonical text, but see `Reading`. Throws `EnvelopeError` or `ValueError`.
    package static func append(
        _ json: inout JSONCursor, depth: Int, _ reading: Reading = .rounded, to text: inout ByteBuffer
    ) throws {
        let start = text.count
        var isSorted = true
        try append(&json, depth: depth, reading, to: &text, isSorted: &isSorted)
        if !isSorted { try sortMembers(of: &text, from: start, reading) }
    }

    /// Appends the text of a value whose outer objects keep the order and the duplicates of their members. Sorting them would cost
    /// more than looking for the few members of each.
    ///
    /// - Parameter levels: the number of levels of objects and arrays whose objects are not sorted.
    package static func append(
        _ json: inout JSONCursor, depth: Int, unsortedLevels levels: Int, to text: inout ByteBuffer
    ) throws {
        let isObject = json.peek() == UInt8(ascii: "{")
        guard levels > 0, isObject || json.peek() == UInt8(ascii: "[") else {
            return try append(&json, depth: depth, to: &text)
        }
        guard depth < JSONCursor.maximumDepth else { throw json.tooDeep() }
        try json.expect(isObject ? UInt8(ascii: "{") : UInt8(ascii: "["))
        text.append(isObject ? UInt8(ascii: "{") : UInt8(ascii: "["))
        let start = text.count
        var isFirst = true
        while true {
            let name = isObject ? try json.name(&isFirst) : nil
            guard try isObject ? name != nil : json.hasElement(&isFirst) else { break }
            if text.count > start { text.append(UInt8(ascii: ",")) }
            if let name {
                appendString(name, of: json, to: &text)
                text.append(UInt8(ascii: ":"))
            }
            try append(&json, depth: depth + 1, unsortedLevels: levels - 1, to: &text)
        }
        text.append(isObject ? UInt8(ascii: "}") : UInt8(ascii: "]"))
    }

    /// - Parameter isSorted: set to false when the members of an object are not in the order of their names.
    private static func append(
        _ json: inout JSONCursor, depth: Int, _ reading: Reading, to text: inout ByteBuffer, isSorted: inout Bool
    ) throws {
        switch json.peek() {
        case UInt8(ascii: "{"): try appendObject(&json, depth: depth, reading, to: &text, isSorted: &isSorted)
        case UInt8(ascii: "["):
            guard depth < JSONCursor.maximumDepth else { throw json.tooDeep() }
            try json.expect(UInt8(ascii: "["))
            text.append(UInt8(ascii: "["))
            var isFirst = true
            var separates = false
            while try json.hasElement(&isFirst) {
                if separates { text.append(UInt8(ascii: ",")) }
                separates = true
                try append(&json, depth: depth + 1, reading, to: &text, isSorted: &isSorted)
            }
            text.append(UInt8(ascii: "]"))
        case UInt8(ascii: "\""): appendString(try json.string(), of: json, to: &text)
        default:
            let bytes = json.bytes(try json.value())
            if reading == .written {
                text.append(bytes)
            } else if let whole = JSONNumber.int(bytes) {
                // Not copied, because of "-0".
                text.append(decimal: Int64(whole))
            } else {
                let start = text.count
                do { try JSONValue.scalar(bytes).write(json: &text) } catch  where reading == .exact {}
                guard reading == .exact else { return }
                let written = UnsafeRawBufferPointer(rebasing: text.bytes[start...])
                guard !written.hasSameBytes(bytes), !JSONNumber.isEqual(written, bytes) else { return }
                text.truncate(to: start)
                text.append(bytes)
            }
        }
    }

    package static func appendString(
        _ range: ByteRange, of json: JSONCursor, to text: inout ByteBuffer
    ) {
        let bytes = json.bytes(range)
        if range.isEscaped || (!isASCII(bytes) && String(validating: bytes, as: UTF8.self) == nil) {
            return JSONString.append(json.text(range), to: &text)
        }
        text.append(UInt8(ascii: "\""))
        text.append(bytes)
        text.append(UInt8(ascii: "\""))
    }

    private static func isASCII(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var all: UInt8 = 0
        for byte in bytes { all |= byte }
        return all < 0x80
    }

    private static func appendObject(
        _ json: inout JSONCursor, depth: Int, _ reading: Reading, to text: inout ByteBuffer, isSorted: inout Bool
    ) throws {
        guard depth < JSONCursor.maximumDepth else { throw json.tooDeep() }
        try json.expect(UInt8(ascii: "{"))
        text.append(UInt8(ascii: "{"))
        var isFirst = true
        var last: Range<Int>?
        while let range = try json.name(&isFirst) {
            if last != nil { text.append(UInt8(ascii: ",")) }
            let from = text.count + 1
            appendString(range, of: json, to: &text)
            let name = from..<text.count - 1
            if isSorted, let last {
                isSorted =
                    compareNames(
                        UnsafeRawBufferPointer(rebasing: text.bytes[last]),
                        UnsafeRawBufferPointer(rebasing: text.bytes[name])) < 0
            }
            last = name
            text.append(UInt8(ascii: ":"))
            try append(&json, depth: depth + 1, reading, to: &text, isSorted: &isSorted)
        }
        text.append(UInt8(ascii: "}"))
    }

    /// Sorts the members of all objects in the value at the end of a text.
    private static func sortMembers(of text: inout ByteBuffer, from start: Int, _ reading: Reading) throws {
        let value = Array(text.bytes[start...])
        text.truncate(to: start)
        try value.withUnsafeBytes { value in
            try appendSorted(value, at: 0, JSONOutline(value), container: 0, reading, to: &text)
        }
    }

    /// - Parameter container: the number of the next container at or behind the value.
    private static func appendSorted(
        _ text: UnsafeRawBufferPointer, at start: Int, _ outline: JSONOutline, container: Int, _ reading: Reading,
        to sorted: inout ByteBuffer
    ) throws {
        let isObject = text[start] == UInt8(ascii: "{")
        guard isObject || text[start] == UInt8(ascii: "[") else {
            let end = outline.end(ofValueAt: start, text, container: container).end
            return sorted.append(UnsafeRawBufferPointer(rebasing: text[start..<end]))
        }
        var parts: [(name: UnsafeRawBufferPointer, value: Int, container: Int)] = []
        var (at, next) = (start + 1, container + 1)
        while at < outline.containers[container].end - 1 {
            if text[at] == UInt8(ascii: ",") { at += 1 }
            let value = isObject ? endOfString(at, text) + 1 : at
            let name = isObject ? at + 1..<value - 2 : at..<at
            parts.append((UnsafeRawBufferPointer(rebasing: text[name]), value, next))
            (at, next) = outline.end(ofValueAt: value, text, container: next)
        }
        if isObject {
            parts.sort {
                let order = compareNames($0.name, $1.name)
                return order < 0 || order == 0 && $0.value < $1.value
            }
        }
        sorted.append(text[start])
        let first = sorted.count
        for (index, part) in parts.enumerated() {
            if isObject, index + 1 < parts.count, parts[index + 1].name.hasSameBytes(part.name) {
                if reading == .written { continue }
                throw ValueError("duplicate member '\(string(part.name).prefix(bytes: 64))'")
            }
            if sorted.count > first { sorted.append(UInt8(ascii: ",")) }
            if isObject {
                sorted.append(UInt8(ascii: "\""))
                sorted.append(part.name)
                sorted.append("\":" as StaticString)
            }
            try appendSorted(text, at: part.value, outline, container: part.container, reading, to: &sorted)
        }
        sorted.append(isObject ? UInt8(ascii: "}") : UInt8(ascii: "]"))
    }
}

internal import Bytes
internal import Glibc
internal import Platform
internal import TrebuchetWire

/// Canonical JSON text: without white space, with member names sorted by their bytes, and with one form for each string and
/// number. Equal values have equal texts.
///
/// Functions that take canonical text do not validate it.
enum CanonicalJSON {
    // MARK: Reading

    /// Returns the index behind a string that begins at `start`.
    @inline(__always)
    static func endOfString(_ start: Int, _ text: UnsafeRawBufferPointer) -> Int {
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
    static func string(_ inside: UnsafeRawBufferPointer) -> String {
        JSONString.text(inside, isEscaped: isEscaped(inside))
    }

    static func isEscaped(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let base = bytes.baseAddress else { return false }
        return memchr(base, 0x5C, bytes.count) != nil
    }

    /// The text of a string without its quotes.
    static func inside(_ string: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: string[1..<string.count - 1])
    }

    /// Compares two names, or the texts of two strings between their quotes, by the bytes of the decoded strings.
    static func compareNames(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Int {
        guard isEscaped(one) || isEscaped(other) else { return compareBytes(one, other) }
        let (one, other) = (string(one), string(other))
        return one.isSameBytes(as: other) ? 0 : one.precedesInBytes(other) ? -1 : 1
    }

    @inline(__always)
    static func compareBytes(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Int {
        let both = min(one.count, other.count)
        if both > 0 {
            let order = memcmp(
                one.baseAddress.unsafelyUnwrapped, other.baseAddress.unsafelyUnwrapped, both)
            if order != 0 { return Int(order) }
        }
        return one.count - other.count
    }

    /// Finds the end of a value, and what its header needs.
    struct Scan {
        private(set) var depth = 0
        private(set) var hasWideNumbers = false

        /// Returns the index behind a value.
        mutating func end(ofValueAt start: Int, _ text: UnsafeRawBufferPointer) -> Int {
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
    static func firstElement<Result>(
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

    /// Calls `body` with the name and value of each member of an object until it returns a result other than nil, and returns
    /// that.
    static func firstMember<Result>(
        _ object: UnsafeRawBufferPointer,
        _ body: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Result?
    ) rethrows -> Result? {
        var at = 1
        while object[at] != UInt8(ascii: "}") {
            if object[at] == UInt8(ascii: ",") { at += 1 }
            let value = endOfString(at, object) + 1
            var scan = Scan()
            let end = scan.end(ofValueAt: value, object)
            let result = try body(
                UnsafeRawBufferPointer(rebasing: object[at + 1..<value - 2]),
                UnsafeRawBufferPointer(rebasing: object[value..<end]))
            if let result { return result }
            at = end
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

    static func eachMember(
        of object: UnsafeRawBufferPointer,
        _ body: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Void
    ) rethrows {
        _ = try firstMember(object) { (name, value) throws -> Void? in
            try body(name, value)
            return nil
        }
    }

    /// Returns the value of a member, nil when there is none or the value is no object.
    ///
    /// - Parameter name: as in the text.
    static func member(_ name: UnsafeRawBufferPointer, of object: UnsafeRawBufferPointer)
        -> UnsafeRawBufferPointer?
    {
        isObject(object) ? firstMember(object) { $0.hasSameBytes(name) ? $1 : nil } : nil
    }

    /// Returns whether the text has these bytes anywhere.
    static func contains(_ bytes: [UInt8], in text: UnsafeRawBufferPointer) -> Bool {
        var rest = text
        while rest.count >= bytes.count,
            let found = memchr(rest.baseAddress.unsafelyUnwrapped, Int32(bytes[0]), rest.count)
        {
            rest = UnsafeRawBufferPointer(
                rebasing: rest[(UnsafeRawPointer(found) - rest.baseAddress.unsafelyUnwrapped)...])
            if rest.starts(with: bytes) { return true }
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst())
        }
        return false
    }

    static let null = Array("null".utf8)

    static func isNull(_ value: UnsafeRawBufferPointer) -> Bool { value[0] == UInt8(ascii: "n") }
    static func isObject(_ value: UnsafeRawBufferPointer) -> Bool { value[0] == UInt8(ascii: "{") }

    /// Returns whether the value or one of its members is null. Array elements do not count: a merge patch replaces arrays as a
    /// whole.
    static func hasNull(_ value: UnsafeRawBufferPointer) -> Bool {
        isNull(value) || isObject(value) && firstMember(value) { hasNull($1) ? true : nil } == true
    }

    // MARK: Writing

    /// Reads any JSON value and appends its canonical text. Throws `EnvelopeError` or `ValueError`: also for a duplicate member
    /// name, and for a number outside the range of `Double`.
    static func append(_ json: inout JSONCursor, depth: Int, to text: inout ByteBuffer) throws {
        switch json.peek() {
        case UInt8(ascii: "{"): try appendObject(&json, depth: depth, to: &text)
        case UInt8(ascii: "["):
            guard depth < JSONCursor.maximumDepth else { throw json.tooDeep() }
            try json.expect(UInt8(ascii: "["))
            text.append(UInt8(ascii: "["))
            var isFirst = true
            var separates = false
            while try json.hasElement(&isFirst) {
                if separates { text.append(UInt8(ascii: ",")) }
                separates = true
                try append(&json, depth: depth + 1, to: &text)
            }
            text.append(UInt8(ascii: "]"))
        case UInt8(ascii: "\""): appendString(try json.string(), of: json, to: &text)
        default:
            let bytes = json.bytes(try json.value())
            if let whole = JSONNumber.int(bytes) {
                // Not copied, because of "-0".
                text.append(decimal: Int64(whole))
            } else {
                try JSONValue.scalar(bytes).write(json: &text)
            }
        }
    }

    private static func appendString(
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

    private static func appendObject(_ json: inout JSONCursor, depth: Int, to text: inout ByteBuffer)
        throws
    {
        guard depth < JSONCursor.maximumDepth else { throw json.tooDeep() }
        try json.expect(UInt8(ascii: "{"))
        let start = text.count
        text.append(UInt8(ascii: "{"))
        var isFirst = true
        var isSorted = true
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
            try append(&json, depth: depth + 1, to: &text)
        }
        text.append(UInt8(ascii: "}"))
        if !isSorted { try sortMembers(of: &text, from: start) }
    }

    /// Sorts the members of the object at the end of a text.
    private static func sortMembers(of text: inout ByteBuffer, from start: Int) throws {
        let object = Array(text.bytes[start...])
        try object.withUnsafeBytes { object in
            var members: [(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)] = []
            eachMember(of: object) { members.append(($0, $1)) }
            members.sort { compareNames($0.name, $1.name) < 0 }
            text.truncate(to: start + 1)
            for (index, member) in members.enumerated() {
                if index > 0 {
                    guard !members[index - 1].name.hasSameBytes(member.name) else {
                        throw ValueError("duplicate member '\(string(member.name).prefix(bytes: 64))'")
                    }
                    text.append(UInt8(ascii: ","))
                }
                text.append(UInt8(ascii: "\""))
                text.append(member.name)
                text.append("\":" as StaticString)
                text.append(member.value)
            }
            text.append(UInt8(ascii: "}"))
        }
    }
}

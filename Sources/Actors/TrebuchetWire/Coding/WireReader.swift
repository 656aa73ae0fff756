#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// A JSON reader for generated code that supports only the form written by Trebuchet's clients: members in declaration order,
/// names without escapes. Other text makes it throw, and the caller falls back to `Codable`.
///
/// It points into a message and must not outlive its decoding. It is not copyable, so that generated code cannot store it.
@_documentation(visibility: internal)
public struct _WireReader: ~Copyable {
    private(set) var cursor: JSONCursor
    private var depth = 0
    /// True until the first member of the object is read.
    private var isFirst = true
    /// The coder for values that decode themselves; nil inside another reader. Both outlive this object.
    private let coder: Unmanaged<ValueCoder>?
    private let source: Unmanaged<JSONReader>?

    init(_ cursor: JSONCursor, coder: ValueCoder) {
        self.cursor = cursor
        self.coder = .passUnretained(coder)
        source = nil
    }

    init(_ cursor: JSONCursor, source: JSONReader) {
        self.cursor = cursor
        coder = nil
        self.source = .passUnretained(source)
    }

    /// Returns the value that is the complete text, or nil if the text is unsupported.
    mutating func all<Value: _WireValue>(_ type: Value.Type) -> Value? {
        guard let value = try? Value(_wire: &self), cursor.peek() == 0, cursor.at == cursor.end else { return nil }
        return value
    }

    func expectEnd() throws {
        var rest = cursor
        try rest.expectEnd()
    }

    // MARK: Objects

    /// Reads the start of an object.
    public mutating func begin() throws {
        guard depth < JSONCursor.maximumDepth, cursor.consume(0x7B) else { throw WireCodeFallback() }
        depth &+= 1
        isFirst = true
    }

    /// Reads the end of an object.
    public mutating func end() throws {
        guard cursor.consume(0x7D) else { throw WireCodeFallback() }
        depth &-= 1
        isFirst = false
    }

    /// Reads the name of a member if it is next. Returns whether it was.
    ///
    /// - Parameter name: in quotes, followed by a colon.
    public mutating func take(_ name: StaticString) -> Bool {
        let count = name.utf8CodeUnitCount
        let start = isFirst ? cursor.at : cursor.at &+ 1
        if cursor.end &- start >= count, isFirst || cursor.base[cursor.at] == 0x2C,
            JSONString.isSame(cursor.base + start, name.utf8Start, count)
        {
            cursor.at = start &+ count
            isFirst = false
            return true
        }
        return takeSpaced(name, count)
    }

    /// Reads a name with white space before it or before the colon.
    @inline(never)
    private mutating func takeSpaced(_ name: StaticString, _ count: Int) -> Bool {
        let before = cursor.at
        guard isFirst || cursor.consume(0x2C), cursor.peek() == 0x22, cursor.end &- cursor.at >= count &- 1,
            memcmp(cursor.base + cursor.at, name.utf8Start, count &- 1) == 0
        else {
            cursor.at = before
            return false
        }
        cursor.at &+= count &- 1
        guard cursor.consume(0x3A) else {
            cursor.at = before
            return false
        }
        isFirst = false
        return true
    }

    /// Reads a null if it is next. Returns whether it was.
    public mutating func takeNull() -> Bool {
        guard cursor.peek() == UInt8(ascii: "n"), cursor.end &- cursor.at >= 4,
            memcmp(cursor.base + cursor.at, "null", 4) == 0
        else { return false }
        cursor.at &+= 4
        return true
    }

    /// Reads a required member.
    @inlinable
    public mutating func member<Value: _WireValue>(_ name: StaticString, _ type: Value.Type) throws -> Value {
        try expect(name)
        return try Value(_wire: &self)
    }

    /// Reads a member that may be absent or null.
    @inlinable
    public mutating func member<Value: _WireValue>(_ name: StaticString, _ type: Value?.Type) throws -> Value? {
        guard take(name), !takeNull() else { return nil }
        return try Value(_wire: &self)
    }

    /// Reads a member that decodes itself.
    @_disfavoredOverload
    public mutating func member<Value: Decodable>(_ name: StaticString, _ type: Value.Type) throws -> Value {
        try expect(name)
        return try decoded(type)
    }

    /// Reads a member that decodes itself and may be absent or null.
    @_disfavoredOverload
    public mutating func member<Value: Decodable>(_ name: StaticString, _ type: Value?.Type) throws -> Value? {
        guard take(name), !takeNull() else { return nil }
        return try decoded(Value.self)
    }

    /// Skips a member whose value is not used.
    public mutating func pass(_ name: StaticString) throws {
        if take(name) { _ = try cursor.value(depth: depth) }
    }

    @usableFromInline
    mutating func expect(_ name: StaticString) throws {
        guard take(name) else { throw WireCodeFallback() }
    }

    private mutating func decoded<Value: Decodable>(_ type: Value.Type) throws -> Value {
        let bytes = cursor.bytes(try cursor.value(depth: depth))
        if let coder { return try coder._withUnsafeGuaranteedRef { try $0.decode(type, from: bytes) } }
        let userInfo = source?._withUnsafeGuaranteedRef { $0.userInfo } ?? [:]
        return try ValueCoder(userInfo: userInfo).decode(type, from: bytes)
    }

    // MARK: Arrays

    /// Reads the start of an array.
    public mutating func beginArray() throws {
        guard depth < JSONCursor.maximumDepth, cursor.consume(0x5B) else { throw WireCodeFallback() }
        depth &+= 1
    }

    /// Returns whether another element follows; at the end it reads the bracket.
    public mutating func hasElement(_ isFirst: inout Bool) throws -> Bool {
        if try cursor.hasElement(&isFirst) { return true }
        depth &-= 1
        return false
    }

    // MARK: Values

    /// Reads a raw-representable value by its raw value.
    @inlinable
    public mutating func raw<Value: RawRepresentable>(_ type: Value.Type) throws -> Value
    where Value.RawValue: _WireValue {
        guard let value = Value(rawValue: try Value.RawValue(_wire: &self)) else { throw unknown }
        return value
    }

    @usableFromInline var unknown: any Error { WireCodeFallback() }

    mutating func bool() throws -> Bool {
        switch cursor.peek() {
        case UInt8(ascii: "t"): return try word("true", is: true)
        case UInt8(ascii: "f"): return try word("false", is: false)
        default: throw WireCodeFallback()
        }
    }

    private mutating func word(_ word: StaticString, is value: Bool) throws -> Bool {
        let count = word.utf8CodeUnitCount
        guard cursor.end &- cursor.at >= count, memcmp(cursor.base + cursor.at, word.utf8Start, count) == 0 else {
            throw WireCodeFallback()
        }
        cursor.at &+= count
        return value
    }

    mutating func string() throws -> String {
        let range = try cursor.string()
        let bytes = cursor.bytes(range)
        if !range.isEscaped, JSONString.isASCII(bytes) { return String(decoding: bytes, as: UTF8.self) }
        let text =
            range.isEscaped
            ? String(validating: JSONString.unescaped(bytes), as: UTF8.self) : String(validating: bytes, as: UTF8.self)
        guard let text else { throw WireCodeFallback() }
        return text
    }

    /// Reads a string without escapes, and returns its bytes.
    mutating func plainString() throws -> UnsafeRawBufferPointer {
        let range = try cursor.string()
        guard !range.isEscaped else { throw WireCodeFallback() }
        return cursor.bytes(range)
    }

    mutating func integer<Integer: FixedWidthInteger>(_ type: Integer.Type) throws -> Integer {
        _ = cursor.peek()
        let start = cursor.at
        if let short = shortInt(), let value = Integer(exactly: short) { return value }
        cursor.at = start
        guard start < cursor.end, cursor.base[start] == 0x2D || cursor.base[start] &- 0x30 < 10 else {
            throw WireCodeFallback()
        }
        try cursor.number()
        guard let value = JSONNumber.integer(type, bytes(from: start)) else { throw WireCodeFallback() }
        return value
    }

    /// Reads an integer of up to eighteen digits; nil for any other text.
    @inline(__always)
    private mutating func shortInt() -> Int? {
        let isNegative = cursor.at < cursor.end && cursor.base[cursor.at] == 0x2D
        if isNegative { cursor.at &+= 1 }
        let (value, count) = digits(atMost: 18)
        guard count > 0, count == 1 || cursor.base[cursor.at - count] != 0x30, endsNumber else { return nil }
        return isNegative ? -value : value
    }

    private func bytes(from start: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: cursor.base + start, count: cursor.at - start)
    }

    /// True if the next byte does not belong to a number.
    @inline(__always)
    private var endsNumber: Bool {
        guard cursor.at < cursor.end else { return true }
        let byte = cursor.base[cursor.at]
        return byte &- 0x30 >= 10 && byte != 0x2E && byte | 0x20 != 0x65
    }

    @inline(__always)
    private mutating func digits(atMost limit: Int) -> (value: Int, count: Int) {
        var (value, count) = (0, 0)
        while cursor.at < cursor.end, count < limit {
            let digit = cursor.base[cursor.at] &- 0x30
            guard digit < 10 else { break }
            value = value &* 10 &+ Int(digit)
            cursor.at &+= 1
            count &+= 1
        }
        return (value, count)
    }

    mutating func double() throws -> Double {
        let first = cursor.peek()
        guard first == 0x2D || first &- 0x30 < 10 else { throw WireCodeFallback() }
        let start = cursor.at
        if let value = shortDouble(first == 0x2D) { return value }
        cursor.at = start
        try cursor.number()
        guard let value = JSONNumber.double(bytes(from: start)) else { throw WireCodeFallback() }
        return value
    }

    /// Reads a number without exponent whose digits are so few that it is an exact quotient; nil for any other text.
    private mutating func shortDouble(_ isNegative: Bool) -> Double? {
        if isNegative { cursor.at &+= 1 }
        let (whole, count) = digits(atMost: 15)
        guard count > 0, count == 1 || cursor.base[cursor.at - count] != 0x30 else { return nil }
        var value = Double(whole)
        if cursor.at < cursor.end, cursor.base[cursor.at] == 0x2E {
            cursor.at &+= 1
            let (fraction, digitCount) = digits(atMost: 15 - count)
            guard digitCount > 0 else { return nil }
            let power = JSONNumber.powersOfTen[digitCount]
            value = (Double(whole) * power + Double(fraction)) / power
        }
        guard endsNumber else { return nil }
        return isNegative ? -value : value
    }
}

package import Bytes

/// The JSON text of a value: parsed in one pass, and written in the canonical form.
extension JSONValue: DirectJSON {
    package init(json: inout JSONCursor, depth: Int) throws {
        switch json.peek() {
        case UInt8(ascii: "{"): self = .object(try JSONObject(json: &json, depth: depth))
        case UInt8(ascii: "["): self = .array(try [JSONValue](json: &json, depth: depth))
        case UInt8(ascii: "\""): self = .string(json.text(try json.string()))
        default: self = try Self.scalar(json.bytes(try json.value()))
        }
    }

    /// Reads a value from its canonical text.
    package init(canonical text: UnsafeRawBufferPointer) { self = Self.read(text).value }

    /// Reads the value at the beginning of a canonical text; returns it with the index behind it.
    private static func read(_ text: UnsafeRawBufferPointer) -> (value: JSONValue, end: Int) {
        switch text.first {
        case UInt8(ascii: "{"):
            var index = JSONObjectIndex()
            let end = index.scan(text)
            return (.object(JSONObject(UnsafeRawBufferPointer(rebasing: text[..<end]), index)), end)
        case UInt8(ascii: "["):
            var elements: [JSONValue] = []
            var at = 1
            while text[at] != UInt8(ascii: "]") {
                if text[at] == UInt8(ascii: ",") { at += 1 }
                let (element, end) = read(UnsafeRawBufferPointer(rebasing: text[at...]))
                elements.append(element)
                at += end
            }
            return (.array(elements), at + 1)
        case UInt8(ascii: "\""):
            let end = CanonicalJSON.endOfString(0, text)
            return (.string(CanonicalJSON.string(UnsafeRawBufferPointer(rebasing: text[1..<end - 1]))), end)
        default:
            var scan = CanonicalJSON.Scan()
            let end = scan.end(ofValueAt: 0, text)
            return (written(UnsafeRawBufferPointer(rebasing: text[..<end])), end)
        }
    }

    /// Returns a number, `true`, `false` or `null` that is written as the text.
    private static func written(_ bytes: UnsafeRawBufferPointer) -> JSONValue {
        if let short = JSONNumber.int(bytes), short != 0 || bytes.count == 1 { return .integer(Int64(short)) }
        guard let first = bytes.first, first < UInt8(ascii: ":") else { return (try? scalar(bytes)) ?? .null }
        // The shortest text of a double with up to 15 digits is these digits; smaller numbers have an exponent.
        if bytes.last != UInt8(ascii: "0"), let short = JSONNumber.shortDouble(bytes), short.magnitude >= 1e-4 {
            return .number(short)
        }
        let text = String(decoding: bytes, as: UTF8.self)
        if let whole = Int64(text), String(whole) == text { return .integer(whole) }
        if let number = Double(text), Self.text(number) == text { return .number(number) }
        return .exact(Number(checked: text))
    }

    /// Parses a number, `true`, `false` or `null`; rounds a number to an `Int64` or a `Double`.
    package static func scalar(_ bytes: UnsafeRawBufferPointer) throws -> JSONValue {
        switch bytes.first {
        case UInt8(ascii: "n"): return .null
        case UInt8(ascii: "t"): return .bool(true)
        case UInt8(ascii: "f"): return .bool(false)
        default: break
        }
        if let short = JSONNumber.int(bytes) { return .integer(Int64(short)) }
        let text = String(decoding: bytes, as: UTF8.self)
        if let long = Int64(text) { return .integer(long) }
        guard let number = Double(text), number.isFinite else {
            throw ValueError("the number \(text.prefix(bytes: 32)) is outside the range of a double")
        }
        // 1.0 and 1 are the same number, so they must be equal values.
        if let whole = Int64(exactly: number), whole.magnitude < 1 << 53 { return .integer(whole) }
        return .number(number)
    }

    package func write(json: inout ByteBuffer) {
        switch self {
        case .null: json.append("null" as StaticString)
        case .bool(true): json.append("true" as StaticString)
        case .bool(false): json.append("false" as StaticString)
        case .integer(let integer): json.append(decimal: integer)
        case .number(let number): json.append(utf8: Self.text(number))
        case .exact(let number): json.append(utf8: number.text)
        case .string(let text): JSONString.append(text, to: &json)
        case .array(let elements):
            json.append(UInt8(ascii: "["))
            for index in elements.indices {
                if index > 0 { json.append(UInt8(ascii: ",")) }
                elements[index].write(json: &json)
            }
            json.append(UInt8(ascii: "]"))
        case .object(let members): members.write(json: &json)
        }
    }

    /// 1.0 and 1 are one number, with one text. JSON has no NaN and no infinity; most encoders write null.
    private static func text(_ number: Double) -> String {
        guard number.isFinite else { return "null" }
        guard let whole = Int64(exactly: number), whole.magnitude < 1 << 53 else {
            return number.description
        }
        return String(whole)
    }

    /// Parses text. The numbers stay as they are written; the last of several members with the same name is used.
    ///
    /// - Throws: an error with the position if the text is not valid JSON or its values are nested deeper than 64.
    public init(text: String) throws {
        var text = text
        self = try text.withUTF8 { try Self(UnsafeRawBufferPointer($0), .written) }
    }

    /// The text, without white space, with the members of objects in the order of the bytes of their names.
    public var text: String { String(decoding: json, as: UTF8.self) }

    package init(_ text: UnsafeRawBufferPointer, _ reading: CanonicalJSON.Reading) throws {
        var cursor = JSONCursor(text)
        var canonical = ByteBuffer()
        do {
            try CanonicalJSON.append(&cursor, depth: 0, reading, to: &canonical)
            try cursor.expectEnd()
        } catch let error as EnvelopeError {
            throw ValueError("not valid JSON: \(error.message)")
        }
        self.init(canonical: canonical.bytes)
    }

    package var json: [UInt8] {
        var buffer = ByteBuffer()
        write(json: &buffer)
        return Array(buffer.bytes)
    }

    /// The number of bytes of the JSON text.
    package var byteCount: Int {
        switch self {
        case .null, .bool(true): 4
        case .bool(false): 5
        case .integer(let integer): integer.digitCount
        case .number(let number): Self.text(number).utf8.count
        case .exact(let number): number.text.utf8.count
        case .string(let text): JSONString.byteCount(text)
        case .array(let elements): elements.reduce(2 + max(0, elements.count - 1)) { $0 + $1.byteCount }
        case .object(let members): members.byteCount
        }
    }

    /// The maximum nesting depth of arrays and objects; 0 for a scalar.
    package var depth: Int {
        switch self {
        case .array(let elements): 1 + (elements.lazy.map(\.depth).max() ?? 0)
        case .object(let members): members.depth
        default: 0
        }
    }

    /// The maximum nesting depth of persisted values. Clients receive them inside other values, in messages of at most 64
    /// levels.
    package static let maximumDepth = 48
}

extension Int64 {
    private static let powers = (0..<20).map { (0..<$0).reduce(1 as UInt64) { power, _ in power * 10 } }

    /// The number of characters of the decimal text.
    package var digitCount: Int {
        // 1233 / 4096 is slightly more than the decimal logarithm of 2.
        let digits = ((UInt64.bitWidth - magnitude.leadingZeroBitCount) * 1_233) >> 12
        return Swift.max(1, digits + (magnitude >= Self.powers[digits] ? 1 : 0)) + (self < 0 ? 1 : 0)
    }
}

extension JSONObject: DirectJSON {
    package init(json: inout JSONCursor, depth: Int) throws {
        var text = ByteBuffer()
        guard json.peek() == UInt8(ascii: "{") else { throw ValueError("expected an object") }
        try CanonicalJSON.append(&json, depth: depth, to: &text)
        self.init(canonical: text.bytes)
    }

    package func write(json: inout ByteBuffer) { withText { json.append($0) } }

    /// The maximum nesting depth of arrays and objects, itself included.
    package var depth: Int {
        withText { text in
            var scan = CanonicalJSON.Scan()
            _ = scan.end(ofValueAt: 0, text)
            return scan.depth
        }
    }

    /// Returns whether `depth` is greater than a limit.
    package func isDeeper(than limit: Int) -> Bool { withParts { $0.depth > limit } && depth > limit }
}

package import Bytes
package import TrebuchetWire

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
            return ((try? scalar(UnsafeRawBufferPointer(rebasing: text[..<end]))) ?? .null, end)
        }
    }

    /// Parses a number, `true`, `false` or `null`.
    static func scalar(_ bytes: UnsafeRawBufferPointer) throws -> JSONValue {
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
        case .string(let text): JSONString.byteCount(text)
        case .array(let elements): elements.reduce(2 + max(0, elements.count - 1)) { $0 + $1.byteCount }
        case .object(let members): members.byteCount
        }
    }

    /// The maximum nesting depth of arrays and objects; 0 for a scalar.
    var depth: Int {
        switch self {
        case .array(let elements): 1 + (elements.lazy.map(\.depth).max() ?? 0)
        case .object(let members): members.depth
        default: 0
        }
    }

    /// The maximum nesting depth of persisted values. Clients receive them inside other values, in messages of at most 64
    /// levels.
    static let maximumDepth = 48
}

extension Int64 {
    private static let powers = (0..<20).map { (0..<$0).reduce(1 as UInt64) { power, _ in power * 10 } }

    /// The number of characters of the decimal text.
    var digitCount: Int {
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
    var depth: Int {
        withText { text in
            var scan = CanonicalJSON.Scan()
            _ = scan.end(ofValueAt: 0, text)
            return scan.depth
        }
    }

    /// Returns whether `depth` is greater than a limit.
    package func isDeeper(than limit: Int) -> Bool { withParts { $0.depth > limit } && depth > limit }
}

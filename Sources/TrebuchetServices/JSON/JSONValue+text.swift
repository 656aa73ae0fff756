package import Bytes
package import TrebuchetWire

/// The JSON text of a value: parsed in one pass, and written without white space and with sorted member names. Equal values
/// have equal texts.
extension JSONValue: DirectJSON {
    package init(json: inout JSONCursor, depth: Int) throws {
        switch json.peek() {
        case UInt8(ascii: "{"): self = .object(try Self.object(&json, depth: depth))
        case UInt8(ascii: "["): self = .array(try [JSONValue](json: &json, depth: depth))
        case UInt8(ascii: "\""): self = .string(json.text(try json.string()))
        default: self = try Self.scalar(json.bytes(try json.value()))
        }
    }

    private static func object(_ json: inout JSONCursor, depth: Int) throws -> JSONObject {
        guard depth < JSONCursor.maximumDepth else { throw json.tooDeep() }
        try json.expect(UInt8(ascii: "{"))
        var members = JSONObject()
        var isFirst = true
        while let range = try json.name(&isFirst) {
            let name = json.text(range)
            guard members[name] == nil else {
                throw ValueError("duplicate member '\(name.prefix(bytes: 64))'")
            }
            members[name] = try JSONValue(json: &json, depth: depth + 1)
        }
        return members
    }

    /// Parses a number, `true`, `false` or `null`.
    private static func scalar(_ bytes: UnsafeRawBufferPointer) throws -> JSONValue {
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
        // JSON has no NaN and no infinity; most encoders write null.
        case .number(let number): json.append(utf8: number.isFinite ? number.description : "null")
        case .string(let text): JSONString.append(text, to: &json)
        case .array(let elements):
            json.append(UInt8(ascii: "["))
            for index in elements.indices {
                if index > 0 { json.append(UInt8(ascii: ",")) }
                elements[index].write(json: &json)
            }
            json.append(UInt8(ascii: "]"))
        case .object(let members):
            json.append(UInt8(ascii: "{"))
            var isFirst = true
            for (name, value) in members.sorted {
                if !isFirst { json.append(UInt8(ascii: ",")) }
                isFirst = false
                JSONString.append(name, to: &json)
                json.append(UInt8(ascii: ":"))
                value.write(json: &json)
            }
            json.append(UInt8(ascii: "}"))
        }
    }

    var json: [UInt8] {
        var buffer = ByteBuffer()
        write(json: &buffer)
        return Array(buffer.bytes)
    }

    /// The number of bytes of the JSON text.
    var byteCount: Int {
        switch self {
        case .null, .bool(true): 4
        case .bool(false): 5
        case .integer(let integer): integer.digitCount
        case .number(let number): number.isFinite ? number.description.utf8.count : 4
        case .string(let text): JSONString.byteCount(text)
        case .array(let elements): elements.reduce(2 + max(0, elements.count - 1)) { $0 + $1.byteCount }
        case .object(let members):
            members.reduce(2 + max(0, members.count - 1)) {
                $0 + JSONString.byteCount($1.name) + 1 + $1.value.byteCount
            }
        }
    }

    /// The maximum nesting depth of arrays and objects; 0 for a scalar.
    var depth: Int {
        switch self {
        case .array(let elements): 1 + (elements.lazy.map(\.depth).max() ?? 0)
        case .object(let members): 1 + (members.values.lazy.map(\.depth).max() ?? 0)
        default: 0
        }
    }

    /// The maximum nesting depth of persisted values. Clients receive them inside other values, in messages of at most 64
    /// levels.
    static let maximumDepth = 48
}

extension Int64 {
    /// The number of characters of the decimal text.
    fileprivate var digitCount: Int {
        var (count, rest) = (self < 0 ? 2 : 1, magnitude)
        while rest >= 10 { (count, rest) = (count + 1, rest / 10) }
        return count
    }
}

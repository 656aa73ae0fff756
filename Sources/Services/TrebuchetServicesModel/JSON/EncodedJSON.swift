package import Bytes
package import TrebuchetWire

// trebuchet: TypeScript = unknown
/// The validated bytes of one JSON value, for values that are forwarded or decoded later. Decoding only scans the bytes, so
/// that rates and sizes can be checked before a value is created.
package struct EncodedJSON: Sendable, Hashable {
    package let bytes: [UInt8]

    package init(_ value: JSONValue) { bytes = value.json }

    package init(canonical text: UnsafeRawBufferPointer) { bytes = Array(text) }
    package init(canonical text: [UInt8]) { bytes = text }

    package var byteCount: Int { bytes.count }

    /// Decodes the value. Throws `ValueError` for JSON that is no `JSONValue`: a duplicate member name, or a number outside the
    /// range of `Double`.
    package func value() throws -> JSONValue { try JSONValue(json: bytes) }

    /// The maximum nesting depth of arrays and objects.
    package var depth: Int { nesting.depth }

    /// The maximum nesting depth of arrays and objects, and the number of members of all objects.
    package var nesting: (depth: Int, members: Int) {
        var (depth, deepest, members, isText, isEscaped) = (0, 0, 0, false, false)
        for byte in bytes {
            if isText {
                if isEscaped {
                    isEscaped = false
                } else if byte == 0x5C {
                    isEscaped = true
                } else if byte == 0x22 {
                    isText = false
                }
                continue
            }
            switch byte {
            case 0x22: isText = true
            case 0x5B, 0x7B:
                depth += 1
                deepest = max(deepest, depth)
            case 0x5D, 0x7D: depth -= 1
            case 0x3A: members += 1
            default: break
            }
        }
        return (deepest, members)
    }
}

extension EncodedJSON: DirectJSON {
    package init(json: inout JSONCursor, depth: Int) throws { bytes = Array(json.bytes(try json.value(depth: depth))) }

    package func write(json: inout ByteBuffer) { json.append(bytes) }
}

extension EncodedJSON: Codable {
    package init(from decoder: any Decoder) throws {
        self = try Self.readDirectly(from: decoder) ?? Self(JSONValue(from: decoder))
    }

    package func encode(to encoder: any Encoder) throws {
        if try writeDirectly(to: encoder) { return }
        try value().encode(to: encoder)
    }
}

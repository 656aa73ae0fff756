internal import Platform

extension StableDigest {
    mutating func combine(_ value: JSONValue) {
        switch value {
        case .null: combine(0 as UInt8)
        case .bool(let bool): combine(bool ? 1 : 2 as UInt8)
        case .integer(let integer): combine(integer)
        case .string(let text):
            combine(5 as UInt8)
            combine(text)
        case .object(let members): combine(members)
        case .number, .array: value.json.withUnsafeBytes { combine(canonical: $0) }
        }
    }

    /// Combines the beginning of an object; its names and values follow.
    mutating func combineObject(count: Int) {
        combine(7 as UInt8)
        combine(UInt64(count))
    }

    private mutating func combine(_ members: JSONObject) {
        members.withParts { parts in
            combineObject(count: parts.count)
            for index in 0..<parts.count {
                combine(string: parts.name(index))
                let value = parts.value(index)
                switch value[0] {
                case UInt8(ascii: "{"), UInt8(ascii: "["): combine(canonical: value)
                case UInt8(ascii: "\""):
                    combine(5 as UInt8)
                    combine(string: CanonicalJSON.inside(value))
                default: combine(scalar: value)
                }
            }
        }
    }

    private mutating func combine(_ integer: Int64) {
        combine(3 as UInt8)
        combine(UInt64(bitPattern: integer))
    }

    /// Combines a value, as its canonical text.
    mutating func combine(canonical text: UnsafeRawBufferPointer) {
        let outline = JSONOutline(text)
        var (at, container) = (0, 0)
        while at < text.count {
            var end = at + 1
            switch text[at] {
            case UInt8(ascii: ","), UInt8(ascii: ":"), UInt8(ascii: "}"), UInt8(ascii: "]"): break
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                combine(text[at] == UInt8(ascii: "[") ? 6 : 7 as UInt8)
                combine(UInt64(outline.containers[container].count))
                container += 1
            case UInt8(ascii: "\""):
                end = CanonicalJSON.endOfString(at, text)
                // The kind of a member's name is known.
                if end == text.count || text[end] != UInt8(ascii: ":") { combine(5 as UInt8) }
                combine(string: UnsafeRawBufferPointer(rebasing: text[at + 1..<end - 1]))
            default:
                var scan = CanonicalJSON.Scan()
                end = scan.end(ofValueAt: at, text)
                combine(scalar: UnsafeRawBufferPointer(rebasing: text[at..<end]))
            }
            at = end
        }
    }

    private mutating func combine(scalar text: UnsafeRawBufferPointer) {
        switch text[0] {
        case UInt8(ascii: "n"): combine(0 as UInt8)
        case UInt8(ascii: "t"): combine(1 as UInt8)
        case UInt8(ascii: "f"): combine(2 as UInt8)
        default: combine(number: text)
        }
    }

    private mutating func combine(string inside: UnsafeRawBufferPointer) {
        guard !CanonicalJSON.isEscaped(inside) else { return combine(CanonicalJSON.string(inside)) }
        combine(UInt64(inside.count))
        combine(inside)
    }

    private mutating func combine(number text: UnsafeRawBufferPointer) {
        switch JSONValue(canonical: text) {
        case .integer(let integer): combine(integer)
        case .number(let number):
            combine(4 as UInt8)
            combine(number.bitPattern)
        default: break
        }
    }
}

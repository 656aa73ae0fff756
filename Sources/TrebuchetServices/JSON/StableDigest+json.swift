internal import Platform

extension StableDigest {
    mutating func combine(_ value: JSONValue) { value.json.withUnsafeBytes { combine(canonical: $0) } }

    /// Combines a value, as its canonical text.
    mutating func combine(canonical text: UnsafeRawBufferPointer) {
        switch text[0] {
        case UInt8(ascii: "n"): combine(0 as UInt8)
        case UInt8(ascii: "t"): combine(1 as UInt8)
        case UInt8(ascii: "f"): combine(2 as UInt8)
        case UInt8(ascii: "\""):
            combine(5 as UInt8)
            combine(string: CanonicalJSON.inside(text))
        case UInt8(ascii: "["):
            var count: UInt64 = 0
            CanonicalJSON.eachElement(of: text) { _ in count += 1 }
            combine(6 as UInt8)
            combine(count)
            CanonicalJSON.eachElement(of: text) { combine(canonical: $0) }
        case UInt8(ascii: "{"):
            var count: UInt64 = 0
            CanonicalJSON.eachMember(of: text) { _, _ in count += 1 }
            combine(7 as UInt8)
            combine(count)
            CanonicalJSON.eachMember(of: text) { name, value in
                combine(string: name)
                combine(canonical: value)
            }
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
        case .integer(let integer):
            combine(3 as UInt8)
            combine(UInt64(bitPattern: integer))
        case .number(let number):
            combine(4 as UInt8)
            combine(number.bitPattern)
        default: break
        }
    }
}

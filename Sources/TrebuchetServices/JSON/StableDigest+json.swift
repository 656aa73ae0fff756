internal import Platform

extension StableDigest {
    mutating func combine(_ value: JSONValue) {
        switch value {
        case .null: combine(0 as UInt8)
        case .bool(let bool): combine(bool ? 1 : 2 as UInt8)
        case .integer(let integer):
            combine(3 as UInt8)
            combine(UInt64(bitPattern: integer))
        case .number(let number):
            combine(4 as UInt8)
            combine(number.bitPattern)
        case .string(let text):
            combine(5 as UInt8)
            combine(text)
        case .array(let elements):
            combine(6 as UInt8)
            combine(UInt64(elements.count))
            for element in elements { combine(element) }
        case .object(let members):
            combine(7 as UInt8)
            combine(members)
        }
    }

    mutating func combine(_ members: JSONObject) {
        combine(UInt64(members.count))
        for (name, value) in members.sorted {
            combine(name)
            combine(value)
        }
    }
}

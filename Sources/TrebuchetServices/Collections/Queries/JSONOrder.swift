/// An order of all values in JSON, absent ones first.
enum JSONOrder {
    /// Below zero when the first comes first, above when the second does.
    static func compare(_ one: JSONValue?, _ other: JSONValue?) -> Int {
        switch (one ?? .null, other ?? .null) {
        case (.integer(let one), .integer(let other)): sign(one, other)
        case (.integer(let one), .number(let other)): sign(Double(one), other)
        case (.number(let one), .integer(let other)): sign(one, Double(other))
        case (.number(let one), .number(let other)): sign(one, other)
        case (.string(let one), .string(let other)): compare(one, other)
        case (.bool(let one), .bool(let other)): sign(one ? 1 : 0, other ? 1 : 0)
        case (.array(let one), .array(let other)): compare(one, other)
        case (.object(let one), .object(let other)): compare(one, other)
        case (let one, let other): sign(rank(one), rank(other))
        }
    }

    /// Whether two values are both numbers or both texts.
    static func areComparable(_ one: JSONValue?, _ other: JSONValue) -> Bool {
        guard let one else { return false }
        return rank(one) == rank(other) && (rank(one) == 2 || rank(one) == 3)
    }

    private static func compare(_ one: [JSONValue], _ other: [JSONValue]) -> Int {
        for (left, right) in zip(one, other) {
            let sign = compare(left, right)
            if sign != 0 { return sign }
        }
        return sign(one.count, other.count)
    }

    private static func compare(_ one: JSONObject, _ other: JSONObject) -> Int {
        let (left, right) = (one.sorted, other.sorted)
        for (left, right) in zip(left, right) {
            let names = compare(left.name, right.name)
            if names != 0 { return names }
            let values = compare(left.value, right.value)
            if values != 0 { return values }
        }
        return sign(left.count, right.count)
    }

    private static func compare(_ one: String, _ other: String) -> Int {
        one.isSameBytes(as: other) ? 0 : one.precedesInBytes(other) ? -1 : 1
    }

    private static func sign<Value: Comparable>(_ one: Value, _ other: Value) -> Int {
        one < other ? -1 : one > other ? 1 : 0
    }

    private static func rank(_ value: JSONValue) -> Int {
        switch value {
        case .null: 0
        case .bool: 1
        case .integer, .number: 2
        case .string: 3
        case .array: 4
        case .object: 5
        }
    }
}

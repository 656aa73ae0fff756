import TrebuchetServices

/// The options of commands that read a collection.
enum QueryArguments {
    static let options = [
        OptionSpec("--where", "CONDITION", "documents for which this holds; several times for several conditions"),
        OptionSpec("--order", "FIELD", "in the order of this field; -FIELD the other way round"),
        OptionSpec("--limit", "N", "the first N documents"),
        OptionSpec("--after", "CURSOR", "documents behind this place, which 'collection get' prints"),
    ]

    static let discussion = #"""
        A condition is FIELD=JSON, or has != < <= > >= instead of =; FIELD^=TEXT for a text that begins so; 'FIELD in JSON,JSON'
        for one of these values; 'FIELD has JSON' for an array with this element. A field in a field is address.city, and
        $creator, $createdAt and $updatedAt are what the server knows:
          trebuchet collection list todos --where done=false --where 'priority in 1,2' --where 'title^=Mi' --order -priority
        """#

    /// Longer ones first where one begins with another.
    private static let operators = ["!=", "<=", ">=", "^=", "=", "<", ">", " in ", " has "]

    static func query(_ arguments: ParsedArguments) throws -> CollectionQuery {
        let order = arguments.string("--order").map { field in
            [field.hasPrefix("-") ? QueryOrder.descending(String(field.dropFirst())) : .ascending(field)]
        }
        return CollectionQuery(
            where: try arguments.all("--where").map(condition), order: order ?? [],
            limit: try arguments.int("--limit", in: 1...10_000), after: arguments.string("--after"))
    }

    static func condition(_ text: String) throws(UsageError) -> QueryCondition {
        for start in text.indices {
            guard let found = operators.first(where: { text[start...].hasPrefix($0) }) else { continue }
            let field = String(text[..<start])
            guard !field.isEmpty else { break }
            return try condition(field, found, String(text[text.index(start, offsetBy: found.count)...]))
        }
        throw UsageError("--where \(text): give a field and its value, as done=false")
    }

    private static func condition(
        _ field: String, _ comparison: String, _ text: String
    ) throws(UsageError) -> QueryCondition {
        switch comparison {
        case "^=":
            guard text.hasPrefix("\""), case .string(let start)? = try? JSONArgument.value(text) else {
                return .prefix(field, text)
            }
            return .prefix(field, start)
        case " in ":
            let list = text.hasPrefix("[") ? text : "[\(text)]"
            guard case .array(let values) = try JSONArgument.value(list) else { return .isIn(field, []) }
            return .isIn(field, values)
        default: break
        }
        let value = try JSONArgument.value(text)
        switch comparison {
        case "!=": return .notEqual(field, value)
        case "<": return .less(field, value)
        case "<=": return .lessOrEqual(field, value)
        case ">": return .greater(field, value)
        case ">=": return .greaterOrEqual(field, value)
        case " has ": return .contains(field, value)
        default: return .equal(field, value)
        }
    }
}

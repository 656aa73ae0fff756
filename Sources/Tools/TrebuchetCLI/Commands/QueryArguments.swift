import Commands
import TrebuchetServices

/// The options of commands that read a collection.
enum QueryArguments {
    static let options = [
        OptionSpec("--where", "CONDITION", "a condition; repeatable"),
        OptionSpec(
            "--order", "FIELDS",
            "order by fields: -priority,title, with - for descending"),
        OptionSpec("--limit", "N", "the first N documents"),
        OptionSpec("--after", "CURSOR", "documents after this position, which 'collection get' prints"),
    ]

    /// Returns the help text of a subcommand of `collection`.
    static func discussion(for command: String) -> String {
        #"""
        A condition is FIELD=JSON, also with != < <= > >=; FIELD^=TEXT for a text that begins with this prefix;
        'FIELD in JSON,JSON' for one of these values; 'FIELD has JSON' for an array with this element. Text values have
        JSON quotes except for ^=. Spaces around an operator are ignored. A nested field is address.city;
        $creator, $createdAt and $updatedAt are metadata of the server:
          trebuchet collection \#(command) todos --where done=false --where 'priority in 1,2' --where 'title^=Mi' --order -priority,title
        """#
    }

    private static let operators = ["=", "!=", "<", "<=", ">", ">=", "^="]
    /// Operators that need spaces around them.
    private static let words = ["in", "has"]
    private static let operatorCharacters: Set<Character> = ["=", "!", "<", ">", "^", "~"]

    static func query(_ arguments: ParsedArguments) throws -> CollectionQuery {
        CollectionQuery(
            where: try arguments.all("--where").map { text throws(UsageError) in try condition(text) },
            order: try arguments.all("--order").flatMap(order), limit: try arguments.int("--limit", in: 1...10_000),
            after: arguments.string("--after"))
    }

    /// Parses an order, as `-priority,address.city`.
    static func order(_ text: String) throws(UsageError) -> [QueryOrder] {
        var orders: [QueryOrder] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let words = part.split(separator: " ").map(String.init)
            guard words.count == 1, let word = words.first, word != "-" else {
                let isWord = words.count == 2 && ["asc", "desc"].contains(words[1].lowercased())
                let right = isWord ? (words[1].lowercased() == "desc" ? "-\(words[0])" : words[0]) : "-priority,title"
                throw UsageError("--order \(text): expected fields, -FIELD for descending, such as --order '\(right)'")
            }
            orders.append(word.hasPrefix("-") ? .descending(String(word.dropFirst())) : .ascending(word))
        }
        return orders
    }

    static func condition(_ text: String, of option: String = "--where") throws(UsageError) -> QueryCondition {
        let (field, comparison, value) = try parts(text, of: option)
        switch comparison {
        case "^=":
            guard value.hasPrefix("\""), case .string(let start)? = try? JSONArgument.value(value) else {
                return .field(field, hasPrefix: value)
            }
            return .field(field, hasPrefix: start)
        case "in":
            let list = value.hasPrefix("[") ? value : "[\(value)]"
            guard case .array(let values)? = try? JSONArgument.value(list) else {
                let right = value.split(separator: ",").map { quoted(trimmed($0)) }.joined(separator: ",")
                throw notJSON("\(option) \(text)", value, right.isEmpty ? nil : "\(option) '\(field) in \(right)'")
            }
            return .field(field, isIn: values)
        default: break
        }
        guard let json = try? JSONArgument.value(value) else {
            let isPlain = !value.isEmpty && !value.contains { "\"[]{}=<>".contains($0) }
            let between = words.contains(comparison) ? " \(comparison) " : comparison
            throw notJSON(
                "\(option) \(text)", value, isPlain ? "\(option) '\(field)\(between)\(quoted(value))'" : nil)
        }
        switch comparison {
        case "!=": return .field(field, doesNotEqual: json)
        case "<": return .field(field, isLessThan: json)
        case "<=": return .field(field, isAtMost: json)
        case ">": return .field(field, isGreaterThan: json)
        case ">=": return .field(field, isAtLeast: json)
        case "has": return .field(field, contains: json)
        default: return .field(field, equals: json)
        }
    }

    /// Parses an option that accepts equations only: `--if done=false`. Returns the field and the value.
    static func equation(_ text: String, of option: String) throws(UsageError) -> (field: String, value: JSONValue) {
        let (field, comparison, value) = try parts(text, of: option)
        guard comparison == "=" else { throw UsageError("\(option) \(text): expected FIELD=JSON, such as done=false") }
        _ = try condition(text, of: option)
        return (field, try JSONArgument.value(value))
    }

    private static func parts(
        _ text: String, of option: String
    ) throws(UsageError) -> (field: String, comparison: String, value: String) {
        guard let start = text.indices.first(where: { isOperator(text, at: $0) }) else {
            throw noOperator("\(option) \(text)")
        }
        let field = trimmed(text[..<start])
        guard !field.isEmpty else {
            throw UsageError("\(option) \(text): expected a field and its value, such as done=false")
        }
        if let word = words.first(where: { text[start...].hasPrefix(" \($0) ") }) {
            return (field, word, trimmed(text[start...].dropFirst(word.count + 2)))
        }
        // A value that begins with '=' is text.
        let run =
            text[start...].hasPrefix("^=") ? "^=" : String(text[start...].prefix { operatorCharacters.contains($0) })
        let value = trimmed(text[start...].dropFirst(run.count))
        guard operators.contains(run) else {
            let known = ["==": "=", "===": "=", "!==": "!=", "=<": "<=", "=>": ">=", "<>": "!=", "^": "^="][run]
            guard let known else { throw noOperator("\(option) \(text)", run) }
            throw UsageError(
                "\(option) \(text): '\(run)' is not an operator; write \(option) '\(field)\(known)\(value)'")
        }
        return (field, run, value)
    }

    private static func isOperator(_ text: String, at index: String.Index) -> Bool {
        operatorCharacters.contains(text[index]) || words.contains { text[index...].hasPrefix(" \($0) ") }
    }

    private static func noOperator(_ text: String, _ found: String? = nil) -> UsageError {
        let what = found.map { "'\($0)' is not an operator" } ?? "the operator is missing"
        let all = (operators + words).joined(separator: " ")
        return UsageError("\(text): \(what); operators are \(all), such as done=false or 'priority in 1,2'")
    }

    private static func notJSON(_ text: String, _ value: String, _ right: String?) -> UsageError {
        guard !value.isEmpty else { return UsageError("\(text): expected a JSON value, such as done=false") }
        let hint = right.map { "a string needs quotes: \($0)" } ?? "repeat the option for several conditions"
        return UsageError("\(text): \(value) is not JSON; \(hint)")
    }

    /// Returns a suggestion as JSON: a JSON value unchanged, `'Milk'` without its single quotes.
    private static func quoted(_ text: String) -> String {
        if (try? JSONArgument.value(text)) != nil { return text }
        let isQuoted = text.count > 1 && text.hasPrefix("'") && text.hasSuffix("'")
        return JSONArgument.text(.string(isQuoted ? String(text.dropFirst().dropLast()) : text))
    }

    private static func trimmed(_ text: Substring) -> String {
        String(String(text.drop { $0 == " " }).reversed().drop { $0 == " " }.reversed())
    }
}

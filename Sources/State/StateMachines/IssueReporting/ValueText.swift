/// Formats values as text, one line for each leaf, so that two of them can be compared visually.
enum ValueText {
    private static let depthLimit = 20

    /// Returns the value over several lines, in the form of an initializer.
    static func lines(of value: Any) -> [String] { lines(of: value, label: nil, depth: 0) }

    /// Returns the value on one line. Long ones are truncated.
    static func summary(of value: Any, limit: Int = 200) -> String {
        let words = lines(of: value).map { String($0.drop { $0 == " " }) }
        var text = words.first ?? ""
        for (previous, word) in zip(words, words.dropFirst()) {
            let joins = previous.hasSuffix("(") || previous.hasSuffix("[") || word.hasPrefix(")") || word.hasPrefix("]")
            text += (joins ? "" : " ") + word
        }
        return text.count > limit ? text.prefix(limit) + "…" : text
    }

    private static func lines(of value: Any, label: String?, depth: Int) -> [String] {
        let prefix = label.map { "\($0): " } ?? ""
        func leaf(_ text: String) -> [String] {
            let parts = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
            return [prefix + (parts.first ?? "")] + parts.dropFirst()
        }
        func block(_ open: String, _ parts: [[String]], _ close: String) -> [String] {
            if parts.isEmpty { return [prefix + open + close] }
            let last = parts.count - 1
            let inner = parts.enumerated().flatMap { index, part in
                part.enumerated().map { line, text in
                    "  " + text + (line == part.count - 1 && index < last ? "," : "")
                }
            }
            return [prefix + open] + inner + [close]
        }
        let mirror = Mirror(reflecting: value)
        guard depth < depthLimit else { return leaf("…") }
        func children() -> [[String]] {
            mirror.children.map { child in
                // The mirror numbers parts without a name: `.0`.
                let label = child.label.flatMap { $0.hasPrefix(".") ? nil : $0 }
                return lines(of: child.value, label: label, depth: depth + 1)
            }
        }
        switch mirror.displayStyle {
        case .optional:
            guard let child = mirror.children.first else { return leaf("nil") }
            return lines(of: child.value, label: label, depth: depth)
        case .collection:
            let parts = mirror.children.enumerated().map {
                lines(of: $1.value, label: "[\($0)]", depth: depth + 1)
            }
            return block("[", parts, "]")
        case .set:
            return block("Set([", children().sorted { $0.joined() < $1.joined() }, "])")
        case .dictionary:
            let parts = mirror.children.map { child -> [String] in
                let pair = Array(Mirror(reflecting: child.value).children)
                return lines(of: pair[1].value, label: summary(of: pair[0].value), depth: depth + 1)
            }
            return block("[", parts.sorted { $0.joined() < $1.joined() }, "]")
        case .enum:
            guard let child = mirror.children.first else { return leaf(".\(value)") }
            let name = child.label ?? "\(type(of: value))"
            let payload = Mirror(reflecting: child.value)
            guard payload.displayStyle == .tuple else {
                return block(".\(name)(", [lines(of: child.value, label: nil, depth: depth + 1)], ")")
            }
            let parts = payload.children.map { part in
                let label = part.label.flatMap { $0.hasPrefix(".") ? nil : $0 }
                return lines(of: part.value, label: label, depth: depth + 1)
            }
            return block(".\(name)(", parts, ")")
        case .tuple: return block("(", children(), ")")
        case .struct where !(value is any CustomStringConvertible):
            return block("\(typeName(of: value))(", children(), ")")
        default:
            return leaf(value is any StringProtocol ? "\"\(value)\"" : String(describing: value))
        }
    }

    /// Returns the name of the type with its enclosing types, but without its module.
    private static func typeName(of value: Any) -> String {
        let full = String(reflecting: type(of: value))
        // The name of a type within a function contains an address.
        if full.contains("(unknown context") { return "\(type(of: value))" }
        return full.split(separator: ".", maxSplits: 1).last.map(String.init) ?? full
    }
}

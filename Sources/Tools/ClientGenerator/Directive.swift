internal import SwiftSyntax

/// An instruction to the generator in a comment `// trebuchet: …` above a declaration.
enum Directive: Equatable {
    /// The directive `TypeScript = { lat: number, lng: number }`: the type of the value in TypeScript, which equals
    /// its JSON.
    case typeScript(String)
    /// The directive `bigint`: 64-bit integers below it are `bigint`.
    case bigint
    /// The directive `number`: 64-bit integers are `number`, without a warning.
    case number
    /// The directive `skip`: the declaration is left out.
    case skip
    /// The directive `as declared`: a custom coding writes and reads the declared stored properties or cases.
    case asDeclared
    /// The directive `name = Dog`: the name in TypeScript.
    case name(String)

    static let known = "'TypeScript = …', 'name = …', 'bigint', 'number', 'as declared' or 'skip'"

    /// Parses a directive; nil for an unknown text.
    init?(_ text: String) {
        let parts = text.split(separator: "=", maxSplits: 1).map(\.trimmedText)
        switch (parts.first ?? "", parts.count == 2 ? parts[1] : nil) {
        case ("TypeScript", let type?) where Self.isBalanced(type): self = .typeScript(type)
        case ("name", let name?) where TypeScriptText.isIdentifier(name): self = .name(name)
        case ("bigint", nil): self = .bigint
        case ("number", nil): self = .number
        case ("skip", nil): self = .skip
        case ("as declared", nil): self = .asDeclared
        default: return nil
        }
    }

    /// Returns true if brackets and quotes in a type are balanced, so that it ends where it should, as TypeScript
    /// reads it: by scalars, since a quotation mark with an accent still counts as one.
    private static func isBalanced(_ type: String) -> Bool {
        var open: [Unicode.Scalar] = []
        var quote: Unicode.Scalar?
        var before: Unicode.Scalar = " "
        // True within `${…}` of a template literal.
        var isInserted = false
        for scalar in type.unicodeScalars {
            guard !TypeScriptText.isHidden(scalar) else { return false }
            defer { before = before == "\\" && scalar == "\\" ? " " : scalar }
            if let end = quote {
                if isInserted {
                    guard !"'\"`{\\".unicodeScalars.contains(scalar) else { return false }
                    isInserted = scalar != "}"
                } else if before == "\\" {
                    continue
                } else if scalar == end {
                    quote = nil
                } else {
                    isInserted = end == "`" && before == "$" && scalar == "{"
                }
                continue
            }
            if before == "=", scalar != ">" { return false }
            switch scalar {
            case "'", "\"", "`": quote = scalar
            case "{", "[", "(", "<": open.append(scalar)
            case ">" where before == "=": break
            case "}", "]", ")", ">":
                guard let last = open.popLast(), "{}[]()<>".contains("\(last)\(scalar)") else { return false }
            case ";" where open.isEmpty: return false
            // Types have none of these, but escapes and comments do.
            case "\\", "/": return false
            default: break
            }
        }
        return !type.isEmpty && open.isEmpty && quote == nil && before != "="
    }
}

/// The comments above a declaration.
struct Comments {
    /// The text of the documentation, one element per line.
    private(set) var documentation: [String] = []
    /// The texts after `// trebuchet:`.
    private(set) var directives: [String] = []

    init(_ trivia: Trivia) {
        for piece in trivia {
            switch piece {
            case .docLineComment(let text): documentation.append(Self.withoutOneSpace(text.dropFirst(3)))
            case .docBlockComment(let text): documentation += Self.lines(ofBlock: text)
            case .lineComment(let text):
                let comment = text.dropFirst(2).trimmedText
                if comment.hasPrefix("trebuchet:") {
                    directives.append(comment.dropFirst("trebuchet:".count).trimmedText)
                }
            default: break
            }
        }
        while documentation.last?.isEmpty == true { documentation.removeLast() }
        while documentation.first?.isEmpty == true { documentation.removeFirst() }
    }

    init(_ node: some SyntaxProtocol) { self.init(node.leadingTrivia) }

    private static func withoutOneSpace(_ text: Substring) -> String {
        var text = text
        if text.first == " " { text = text.dropFirst() }
        while text.last?.isWhitespace == true { text = text.dropLast() }
        return String(text)
    }

    /// Returns the lines of `/** … */` without the leading stars.
    private static func lines(ofBlock text: String) -> [String] {
        text.dropFirst(3).dropLast(2).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map { line in
            var line = line.drop { $0 == " " || $0 == "\t" }
            if line.first == "*" { line = line.dropFirst() }
            return withoutOneSpace(line)
        }
    }
}

extension StringProtocol {
    var trimmedText: String {
        var text = self[...]
        while text.first?.isWhitespace == true { text = text.dropFirst() }
        while text.last?.isWhitespace == true { text = text.dropLast() }
        return String(text)
    }
}

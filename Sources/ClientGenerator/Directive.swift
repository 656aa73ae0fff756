internal import SwiftSyntax

/// What a comment `// trebuchet: …` above a declaration tells the generator.
enum Directive: Equatable {
    /// `TypeScript = { lat: number, lng: number }`: what the value is in TypeScript, which is also what stands in the JSON.
    case typeScript(String)
    /// `bigint`: 64-bit integers below it are `bigint`.
    case bigint
    /// `number`: they are `number`, and nobody needs to be warned of it.
    case number
    /// `skip`: it is left out.
    case skip
    /// `as declared`: a custom coding writes and reads what the stored properties or cases say.
    case asDeclared
    /// `name = Dog`: what it is called in TypeScript.
    case name(String)

    static let known = "'TypeScript = …', 'name = …', 'bigint', 'number', 'as declared' or 'skip'"

    /// Nil when the text says nothing that is known.
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

    /// Whether what is opened in a type is closed in it, so that it ends where it should, as TypeScript reads it: by scalars, since a
    /// quotation mark with an accent is one still.
    private static func isBalanced(_ type: String) -> Bool {
        var open: [Unicode.Scalar] = []
        var quote: Unicode.Scalar?
        var before: Unicode.Scalar = " "
        // Amid a text, what stands in `${…}`.
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
            // No type has them, but escapes and comments do.
            case "\\", "/": return false
            default: break
            }
        }
        return !type.isEmpty && open.isEmpty && quote == nil && before != "="
    }
}

/// The comments above a declaration.
struct Comments {
    /// The text of the documentation, a line each.
    private(set) var documentation: [String] = []
    /// The texts behind `// trebuchet:`.
    private(set) var told: [String] = []

    init(_ trivia: Trivia) {
        for piece in trivia {
            switch piece {
            case .docLineComment(let text): documentation.append(Self.withoutOneSpace(text.dropFirst(3)))
            case .docBlockComment(let text): documentation += Self.lines(ofBlock: text)
            case .lineComment(let text):
                let comment = text.dropFirst(2).trimmedText
                if comment.hasPrefix("trebuchet:") { told.append(comment.dropFirst("trebuchet:".count).trimmedText) }
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

    /// The lines of `/** … */` without the stars that may stand before each.
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

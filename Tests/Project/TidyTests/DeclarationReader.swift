/// A declaration that is visible to clients, at the line of its name.
struct PublicDeclaration {
    let line: Int
    /// With a first label that distinguishes witnesses from other functions: `init(from:`.
    let name: String
    /// True if it, or its enclosing declaration, is left out of the symbol graph.
    let isHidden: Bool
}

/// Finds the public declarations of a file by its lines: those marked `public`, and those that are public without it: cases of public
/// enums, members of public protocols and of public extensions. The enclosing declaration follows from the indentation, which `swift
/// format` enforces. Without regular expressions, which take half a minute for all lines.
struct DeclarationReader {
    private struct Scope {
        let kind: String
        let indentation: Int
        let isPublic: Bool
        let isHidden: Bool
    }

    private struct Declaration {
        let kind: String
        let name: String
        let isPublic: Bool
        /// Whether an access modifier is present.
        let hasAccess: Bool
    }

    private var scopes: [Scope] = []

    static func declarations(in file: SourceText) -> [PublicDeclaration] {
        var reader = DeclarationReader()
        return file.code.indices.compactMap { reader.read($0, of: file) }
    }

    private mutating func read(_ line: Int, of file: SourceText) -> PublicDeclaration? {
        let text = file.code[line]
        let trimmed = Substring(text.utf8.drop { $0 == UInt8(ascii: " ") })
        // A declaration continues in lines like these.
        guard let first = trimmed.first, !"{)>#".contains(first), !trimmed.hasPrefix("where ") else { return nil }
        let indentation = text.utf8.count - trimmed.utf8.count
        while let last = scopes.last, last.indentation >= indentation { scopes.removeLast() }
        guard let found = Self.declaration(on: trimmed) else { return nil }
        let parent = scopes.last
        guard found.kind != "case" || parent?.kind == "enum" else { return nil }
        let isPublic =
            switch (found.kind, parent?.kind) {
            case ("case", _), (_, "protocol"): parent?.isPublic == true
            case (_, "extension") where !found.hasAccess && found.kind != "extension": parent?.isPublic == true
            default: found.isPublic
            }
        let isHidden = parent?.isHidden == true || Self.isHidden(line, in: file)
        scopes.append(
            Scope(kind: found.kind, indentation: indentation, isPublic: isPublic, isHidden: isHidden))
        guard isPublic, found.kind != "extension" else { return nil }
        return PublicDeclaration(line: line, name: found.name, isHidden: isHidden)
    }

    private static let access: Set<String> = ["public", "open", "private", "fileprivate", "package", "internal"]
    private static let modifiers = access.union([
        "final", "static", "mutating", "nonmutating", "nonisolated", "distributed", "indirect", "override", "required",
        "convenience", "lazy", "weak", "unowned", "prefix", "postfix", "borrowing", "consuming", "dynamic", "optional",
    ])
    private static let kinds: Set<String> = [
        "class", "struct", "enum", "actor", "protocol", "typealias", "func", "var", "let", "macro", "associatedtype",
        "extension", "case",
    ]

    private static func declaration(on line: Substring) -> Declaration? {
        var rest = line
        while rest.first == "@" {
            rest = rest.drop { !$0.isWhitespace && $0 != "(" }
            skipParentheses(&rest)
            rest = rest.drop(while: \.isWhitespace)
        }
        var isPublic = false
        var hasAccess = false
        while true {
            let word = String(Substring(rest.utf8.prefix { $0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7A }))
            rest = Substring(rest.utf8.dropFirst(word.utf8.count))
            let next = rest.drop(while: \.isWhitespace)
            if word == "init" || word == "subscript" {
                guard let first = rest.first, "(<?!".contains(first) else { return nil }
                return Declaration(kind: word, name: labelled(word, rest), isPublic: isPublic, hasAccess: hasAccess)
            }
            let isModifier = word == "class" && (next.hasPrefix("func ") || next.hasPrefix("var "))
            if kinds.contains(word), !isModifier {
                guard rest.first?.isWhitespace == true else { return nil }
                let name = next.drop { $0 == "`" }.prefix { !$0.isWhitespace && !"(:`{,".contains($0) }
                // For a generic name, the part before its parameters; an operator is complete.
                let plain = name.first?.isLetter == true ? name.prefix { $0 != "<" && $0 != "=" } : name
                return Declaration(
                    kind: word, name: labelled(String(plain), next.dropFirst(name.count)), isPublic: isPublic,
                    hasAccess: hasAccess)
            }
            guard isModifier || modifiers.contains(word) else { return nil }
            // `public private(set)`; but `open(file)` is a call.
            if rest.first != "(" {
                isPublic = isPublic || word == "public" || word == "open"
                hasAccess = hasAccess || access.contains(word)
            }
            skipParentheses(&rest)
            rest = rest.drop(while: \.isWhitespace)
        }
    }

    private static func labelled(_ name: String, _ rest: Substring) -> String {
        for label in ["from", "to", "into", "after", "before"]
        where rest.hasPrefix("(\(label) ") || rest.hasPrefix("(\(label):") {
            return "\(name)(\(label):"
        }
        return name
    }

    private static func skipParentheses(_ rest: inout Substring) {
        guard rest.first == "(" else { return }
        var depth = 0
        for index in rest.indices {
            if rest[index] == "(" { depth += 1 }
            if rest[index] == ")" { depth -= 1 }
            if depth == 0 { return rest = rest[rest.index(after: index)...] }
        }
        rest = ""
    }

    private static func isHidden(_ line: Int, in file: SourceText) -> Bool {
        (firstLine(of: line, in: file)...line).contains { file.code[$0].contains("visibility: internal") }
    }

    /// The first line of a declaration, with its attributes and the conditions before it.
    static func firstLine(of line: Int, in file: SourceText) -> Int {
        let indentation = file.code[line].prefix(while: \.isWhitespace).count
        var first = line
        while first > 0 {
            var above = first - 1
            // The arguments of an attribute may span several lines.
            if file.code[above].hasSuffix(")") {
                while above > 0, !file.code[above].drop(while: \.isWhitespace).hasPrefix("@"),
                    file.code[above].contains(/^ *\)$/)
                        || file.code[above].prefix(while: \.isWhitespace).count > indentation
                { above -= 1 }
            }
            let text = file.code[above].drop(while: \.isWhitespace)
            guard text.first == "@" || text.hasPrefix("#if") else { return first }
            first = above
        }
        return first
    }
}

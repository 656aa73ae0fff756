/// Public declarations say in a doc comment what a caller must know.
enum DocumentationRules {
    /// The modules whose public declarations are a package's interface.
    static let modules: Set<String> = [
        "Deltas", "IdentifiedArrays", "Loading", "QStream", "Relays", "SharedState", "StateMachines", "Transports",
        "Trebuchet", "TrebuchetActors", "TrebuchetClient", "TrebuchetServices", "TrebuchetStore", "TrebuchetTesting",
        "WebSockets",
    ]

    /// How many a module may still lack; none where it is not named. Lower it with the sentences that you write.
    static let lacking = [
        "Deltas": 14, "IdentifiedArrays": 10, "Loading": 27, "QStream": 34, "Relays": 6, "SharedState": 27,
        "StateMachines": 45, "Transports": 14, "Trebuchet": 7, "TrebuchetActors": 93, "TrebuchetClient": 2,
        "TrebuchetStore": 7, "TrebuchetTesting": 7,
    ]

    /// What only satisfies a protocol of the standard library, whose own documentation tells of it.
    private static let witnesses: Set<String> = [
        "==", "<", "hash(into:", "description", "debugDescription", "errorDescription", "encode(to:", "init(from:",
        "makeAsyncIterator", "makeIterator", "next",
    ]

    /// The public declarations of a file that have no doc comment. Names that begin with an underscore need none, nor
    /// does what a symbol graph leaves out, nor an extension or an import. Cases of public enums and members of public
    /// extensions, which are public without the word, are not looked at.
    static func findings(in file: SourceText) -> [Finding] {
        guard file.path.hasPrefix("Sources/"), let module = file.module, modules.contains(module) else { return [] }
        return file.code.indices.compactMap { line in
            guard let name = declared(on: file.code[line]), !witnesses.contains(name), !name.hasPrefix("_"),
                !isDocumented(line, in: file)
            else { return nil }
            return Finding(path: file.path, line: line + 1, message: "\(name) is public and has no doc comment")
        }
    }

    private static let modifiers: Set<String> = [
        "public", "open", "final", "static", "mutating", "nonmutating", "nonisolated", "distributed", "indirect",
        "override", "required", "convenience", "lazy", "weak", "unowned", "prefix", "postfix", "private", "package",
        "internal", "borrowing", "consuming", "dynamic", "optional",
    ]
    private static let kinds: Set<String> = [
        "class", "struct", "enum", "actor", "protocol", "typealias", "func", "var", "let", "macro", "associatedtype",
    ]

    /// The name of the public declaration that a line begins; a first label that tells witnesses from others goes with it.
    /// By hand: a regular expression takes half a minute for all lines.
    private static func declared(on line: String) -> String? {
        guard line.contains("public") || line.contains("open") else { return nil }
        var rest = line.drop(while: \.isWhitespace)
        while rest.first == "@" {
            rest = rest.drop { !$0.isWhitespace && $0 != "(" }
            skipParentheses(&rest)
            rest = rest.drop(while: \.isWhitespace)
        }
        var isPublic = false
        while true {
            let word = String(rest.prefix { $0.isLetter })
            rest = rest.dropFirst(word.count)
            if word == "init" || word == "subscript" { return isPublic ? labelled(word, rest) : nil }
            let next = rest.drop(while: \.isWhitespace)
            let isModifier = word == "class" && (next.hasPrefix("func ") || next.hasPrefix("var "))
            if kinds.contains(word), !isModifier {
                let name = next.drop { $0 == "`" }.prefix { !$0.isWhitespace && !"(:`{".contains($0) }
                // Of a generic name what stands before its parameters; an operator is whole.
                let plain = name.first?.isLetter == true ? name.prefix { $0 != "<" && $0 != "=" } : name
                return isPublic ? labelled(String(plain), next.dropFirst(name.count)) : nil
            }
            guard isModifier || modifiers.contains(word) else { return nil }
            // `public private(set)`; but `open(file)` is a call.
            if rest.first != "(" { isPublic = isPublic || word == "public" || word == "open" }
            skipParentheses(&rest)
            rest = rest.drop(while: \.isWhitespace)
        }
    }

    private static func labelled(_ name: String, _ rest: Substring) -> String {
        for label in ["from", "to", "into"] where rest.hasPrefix("(\(label) ") || rest.hasPrefix("(\(label):") {
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

    private static func isDocumented(_ line: Int, in file: SourceText) -> Bool {
        var above = line - 1
        // Attributes and conditions stand between a comment and what it is of.
        while above >= 0, file.code[above].contains(/^\s*(?:@|#if|\))/) {
            if file.code[above].contains("visibility: internal") { return true }
            above -= 1
        }
        return above >= 0 && file.comments[above].contains(/^\s*(?:\/\/\/|.*\*\/)/)
            || file.code[line].contains("visibility: internal")
    }
}

/// Writes names, texts and comments in TypeScript.
enum TypeScriptText {
    /// Words that cannot be the name of a constant, a function or a parameter.
    private static let reserved: Set<String> = [
        "arguments", "await", "break", "case", "catch", "class", "const", "continue", "debugger", "default", "delete",
        "do",
        "else", "enum", "eval", "export", "extends", "false", "finally", "for", "function", "if", "implements",
        "import",
        "in", "instanceof", "interface", "let", "new", "null", "package", "private", "protected", "public", "return",
        "static", "super", "switch", "this", "throw", "true", "try", "typeof", "undefined", "var", "void", "while",
        "with",
        "yield",
    ]

    /// Words that cannot be the name of a type.
    private static let typeWords: Set<String> = [
        "any", "asserts", "bigint", "boolean", "infer", "intrinsic", "is", "keyof", "never", "number", "object",
        "readonly", "string",
        "symbol", "unique", "unknown",
    ]

    /// Names that a generated file uses itself.
    private static let used: Set<String> = [
        "Array", "Call", "CallOptions", "Codec", "Date", "Decimal", "Map", "Partial", "Record", "UUID", "Uint8Array",
        "UnknownCase", "actorType", "array", "data", "date", "decimal", "globalThis", "lazy", "map", "nullable",
        "record",
        "struct", "union",
    ]

    /// Returns true if a type or an actor needs another name in TypeScript.
    static func isTaken(_ name: String) -> Bool { [reserved, typeWords, used].contains { $0.contains(name) } }

    /// Returns the name of a generic parameter, always the same. A name with other characters is written with their
    /// numbers.
    static func typeParameter(_ name: String) -> String {
        guard isIdentifier(name) else {
            return "T" + name.unicodeScalars.map { "_" + String($0.value, radix: 16) }.joined()
        }
        return isTaken(name) || name == "out" ? name + "_" : name
    }

    /// Returns true if a text can be a name, as far as its letters are concerned.
    ///
    /// Letters beyond U+FFFF are excluded: TypeScript accepts them only for newer targets.
    static func isIdentifier(_ name: String) -> Bool {
        guard let first = name.unicodeScalars.first else { return false }
        func isStart(_ scalar: Unicode.Scalar) -> Bool {
            scalar == "_" || scalar == "$" || (scalar.properties.isIDStart && scalar.value <= 0xFFFF)
        }
        return isStart(first)
            && name.unicodeScalars.dropFirst().allSatisfy {
                isStart($0) || ($0.properties.isIDContinue && $0.value <= 0xFFFF)
            }
    }

    /// Returns the name of a member in an interface or an object literal.
    static func member(_ name: String) -> String { isIdentifier(name) ? name : quoted(name) }

    /// Returns the name of a member in an object literal, where a plain `__proto__` would not be a member.
    static func key(_ name: String) -> String { name == "__proto__" ? "[\"__proto__\"]" : member(name) }

    /// Returns valid and distinct names of parameters.
    static func parameters(_ names: [String], taken: Set<String> = []) -> [String] {
        var taken = taken
        return names.enumerated().map { position, name in
            var name = isIdentifier(name) ? name : "argument\(position)"
            while reserved.contains(name) || !taken.insert(name).inserted { name += "_" }
            return name
        }
    }

    /// Returns a string literal.
    static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case _ where isHidden(scalar):
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }

    /// Returns true for a character that ends a line, changes the direction of a text, or is invisible.
    static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{2028}"..."\u{202E}", "\u{2066}"..."\u{2069}", "\u{FEFF}": true
        default: false
        }
    }

    /// Returns a documentation comment before a line. Its text cannot end the comment.
    static func comment(_ lines: [String], indent: String = "") -> String {
        guard !lines.isEmpty else { return "" }
        let lines = lines.map(escapedComment)
        if lines.count == 1 { return "\(indent)/** \(lines[0]) */\n" }
        return "\(indent)/**\n"
            + lines.map { $0.isEmpty ? "\(indent) *\n" : "\(indent) * \($0)\n" }.joined() + "\(indent) */\n"
    }

    /// Returns a documentation comment with a line for the deprecation, which editors show at each use.
    static func comment(_ documentation: ClientModel.Documentation, indent: String = "") -> String {
        let deprecation = documentation.deprecation.map { $0.isEmpty ? ["@deprecated"] : ["@deprecated \($0)"] } ?? []
        return comment(documentation.lines + deprecation, indent: indent)
    }

    /// Returns the line without character sequences that end a comment or a line, or change the direction of a text.
    private static func escapedComment(_ line: String) -> String {
        var scalars = String.UnicodeScalarView()
        for scalar in line.unicodeScalars {
            // Checked in the output, because an omitted character may have separated two others.
            if scalars.last == "*", scalar == "/" { scalars.append("\\") }
            switch scalar {
            case "\t": scalars.append(" ")
            case _ where isHidden(scalar): break
            default: scalars.append(scalar)
            }
        }
        return String(scalars)
    }
}

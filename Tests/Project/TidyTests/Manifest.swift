/// The targets that a Package.swift declares, read from its text.
struct Manifest: Sendable {
    struct Target: Equatable, Sendable {
        let name: String
        let dependencies: [String]
    }

    let targets: [Target]

    /// Reads SwiftPM's own forms (`.target(name: "A", dependencies: ["B"])`) and the package's short ones (`library("A", in: "Group", ["B"])`,
    /// `test("A", ["B"])`). Targets in comments do not count.
    init(_ text: String) {
        let code = SourceText(path: "Package.swift", text).uncommented.joined(separator: "\n")
        let long = /\.(?:target|executableTarget|testTarget|macro|systemLibrary|plugin)\(\s*name:\s*"([^"]+)"/
        let short = /(?:^|[^.\w])(?:library|test)\(\s*"([^"]+)"\s*,?(?:\s*in:\s*"[^"]*"\s*,?)?/
        targets =
            code.matches(of: long).map { match in
                let arguments = Self.arguments(code[match.range.upperBound...])
                let list = arguments.firstMatch(of: /\bdependencies:\s*/).map { arguments[$0.range.upperBound...] }
                return Target(name: String(match.output.1), dependencies: Self.names(inList: list ?? ""))
            }
            + code.matches(of: short).map { match in
                let arguments = Self.arguments(code[match.range.upperBound...])
                return Target(name: String(match.output.1), dependencies: Self.names(inList: arguments))
            }
    }

    func target(_ name: String) -> Target? { targets.first { $0.name == name } }

    /// The text up to the parenthesis that closes the call.
    private static func arguments(_ text: Substring) -> Substring {
        var depth = 0
        for index in text.indices {
            if text[index] == "(" { depth += 1 }
            if text[index] == ")" { depth -= 1 }
            if depth < 0 { return text[..<index] }
        }
        return text
    }

    /// The plain strings of the list at the start of the text; empty when the text starts with something else.
    private static func names(inList text: Substring) -> [String] {
        let text = text.drop(while: \.isWhitespace)
        guard text.first == "[" else { return [] }
        // Products of other packages are in parentheses.
        let list = text.prefix { $0 != "]" }.replacing(/\([^()]*\)/, with: "")
        return list.matches(of: /"([^"]+)"/).map { String($0.output.1) }
    }
}

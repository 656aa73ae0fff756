/// Source files without references from other files.
enum DeadFiles {
    /// Files in Sources and Benchmarks whose declarations no other file names.
    static func findings(in files: [SourceText]) -> [Finding] {
        var usage: [String: Int] = [:]
        for file in files {
            for name in file.identifiers { usage[name, default: 0] += 1 }
        }
        return files.filter { !$0.isTestCode && !isEntry($0) }.compactMap { file in
            guard case .names(let names) = declarations(of: file) else { return nil }
            // The file itself counts for one.
            if names.contains(where: { usage[$0, default: 0] > 1 }) { return nil }
            let list = names.isEmpty ? "it declares nothing" : names.sorted().joined(separator: ", ")
            return Finding(path: file.path, message: "a dead file: nothing outside it names what it declares (\(list))")
        }
    }

    enum Declarations: Equatable {
        case names(Set<String>)
        /// The file declares something that is used without being named: a conformance, an initialiser, an operator.
        case usedUnnamed
    }

    /// The names a file declares at top level, or, in its extensions, one level below.
    static func declarations(of file: SourceText) -> Declarations {
        var names: Set<String> = []
        var isInExtension = false
        var conditions = 0
        let pattern = declarationPattern
        for indented in file.code {
            if indented.contains("#endif") { conditions -= 1 }
            // Inside `#if`, top level is indented.
            let line =
                indented.hasPrefix(String(repeating: " ", count: 4 * max(0, conditions)))
                ? String(indented.dropFirst(4 * max(0, conditions))) : indented
            if indented.contains("#if ") { conditions += 1 }
            let isTopLevel = line.first?.isWhitespace == false
            let isMember = isInExtension && line.hasPrefix("    ") && line.dropFirst(4).first?.isWhitespace == false
            guard isTopLevel || isMember, let match = line.firstMatch(of: pattern) else { continue }
            let (keyword, name) = (String(match.output.1), String(match.output.2))
            if isTopLevel { isInExtension = keyword == "extension" }
            switch keyword {
            case "extension":
                if line.contains(/extension\s+[\w.]+\s*:/) { return .usedUnnamed }
            case "init", "subscript", "operator": return .usedUnnamed
            case "func" where name.isEmpty: return .usedUnnamed
            default: names.insert(name)
            }
        }
        return .names(names)
    }

    private static var declarationPattern: Regex<(Substring, Substring, Substring)> {
        #/
            ^\s* (?: @\w+ (?: \( [^)]* \) )? \s+ )*
            (?: (?: public | package | internal | fileprivate | private | open | final | indirect | static | mutating
                  | nonisolated | distributed | convenience | override | prefix | postfix | infix | lazy | weak ) (?: \( \w+ \) )? \s+ )*
            (struct | class | enum | protocol | actor | typealias | func | let | var | macro | case | extension | init
                  | subscript | operator)
            \b \s* `? (\w*)
            /#
    }

    private static func isEntry(_ file: SourceText) -> Bool {
        file.name == "main.swift" || file.code.contains { $0.hasPrefix("@main") }
    }
}

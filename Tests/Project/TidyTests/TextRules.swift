/// Rules that concern a single file.
enum TextRules {
    static func findings(in file: SourceText) -> [Finding] {
        let common =
            placeholder(file) + ownOutput(file) + unexplained(in: file) + openSecrets(in: file)
            + uncut(in: file)
        // Programs with pauses in their schedules, and the only place where tests pause while waiting.
        let mayPause = [
            "Tools/Torment/", "Tools/Consistency/", "Tools/Mutate/", "Tests/Support/TestSupport/Eventually.swift",
        ]
        if mayPause.contains(where: { file.path.hasPrefix($0) }) { return common + leftovers(in: file) }
        return common
            + (file.isTestCode ? namelessTests(in: file) + sleeps(in: file) : leftovers(in: file))
    }

    /// Sources of at most 15 lines.
    static func short(_ files: [SourceText]) -> [SourceText] {
        files.filter { $0.path.hasPrefix("Sources/") && $0.lines.count <= 15 }
    }

    static func placeholder(_ file: SourceText) -> [Finding] {
        guard file.name == "Placeholder.swift" else { return [] }
        return [Finding(path: file.path, message: "a placeholder: put something in its place or remove the target")]
    }

    /// Reminders in comments: an issue is the place for them.
    static func leftovers(in file: SourceText) -> [Finding] {
        scan(file, file.lines, for: /\b(?:TODO|FIXME|XXX)\b/) { "\($0): finish it or write an issue" }
    }

    /// Unchecked assertions to the compiler need a reason, on the line or within the three lines above.
    static func unexplained(in file: SourceText) -> [Finding] {
        guard !file.identifiers.isDisjoint(with: ["unchecked", "unsafe", "unsafeBitCast", "assumeIsolated"]) else {
            return []
        }
        let promise = /@unchecked\s+Sendable\b|\bnonisolated\(unsafe\)|\bunsafeBitCast\b|\bassumeIsolated\b/
        return scan(file, file.code, for: promise) {
            "\($0) without a comment that says which invariant makes it right"
        }
        .filter { finding in
            let line = finding.line! - 1
            return file.comments[max(0, line - 3)...line].allSatisfy { $0.allSatisfy(\.isWhitespace) }
        }
    }

    /// The number of types in the sources whose `Sendable` conformance the compiler does not check. A file and a link to it count once.
    static func uncheckedSendables(in files: [SourceText]) -> Int {
        let files = files.filter { $0.path.hasPrefix("Sources/") && $0.identifiers.contains("unchecked") }
        return Set(files.map(\.code)).reduce(0) { count, code in
            count + code.count { $0.contains(/@unchecked\s+Sendable\b/) }
        }
    }

    /// Arguments of service methods that confer a right on their holder must be hidden from the inspector.
    static func openSecrets(in file: SourceText) -> [Finding] {
        guard file.path.hasPrefix("Sources/Services/TrebuchetServices/") else { return [] }
        let code = file.code.joined(separator: "\n")
        return code.matches(of: /distributed\s+func\s+(\w+)\s*\(([^)]*)\)/).compactMap { match in
            let secret = match.output.2.firstMatch(of: /(?i)\b(\w*(?:token|secret|password|attempt)|code|client)\s*:/)
            guard let secret else { return nil }
            let line = code[..<match.range.lowerBound].count { $0 == "\n" }
            guard !file.code[max(0, line - 2)...line].contains(where: { $0.contains("@Redacted") }) else { return nil }
            return Finding(
                path: file.path, line: line + 1,
                message: "'\(secret.output.1)' of '\(match.output.1)' may be a secret: mark the method @Redacted")
        }
    }

    /// A write to a standard stream may block, or end the process: one file does it for all.
    static func ownOutput(_ file: SourceText) -> [Finding] {
        // A tool that is no server, and an operator that prints to a given destination.
        let others = [
            "Sources/Base/Platform/StandardStream.swift", "Sources/Tools/GenerateTool/",
            "Sources/State/QStream/Operators/Print.swift",
        ]
        guard file.path.hasPrefix("Sources/") || file.path.hasPrefix("Benchmarks/"),
            !others.contains(where: { file.path.hasPrefix($0) })
        else { return [] }
        let output =
            /(?:^|[^.\w])(?:print|debugPrint|dump|puts|fputs|perror|printf|vprintf)\s*\(|\bSwift\.(?:print|debugPrint|dump)\s*\(|FileHandle\s*\.\s*standard(?:Output|Error)|\bwrite\s*\(\s*(?:[12]|STD(?:OUT|ERR)_FILENO)\b|\bf(?:write|putc)\s*\(.*\bstd(?:out|err)\b/
        return scan(file, file.code, for: output) {
            "\($0.drop { !$0.isLetter }): write with StandardStream, or in a command with Console"
        }
        .filter { !file.code[$0.line! - 1].contains(/\bfunc\s+print\b/) }
    }

    /// Foreign texts that are echoed, recorded or stored have a limit in bytes: one character may have any number of them.
    static func uncut(in file: SourceText) -> [Finding] {
        // These modules show only texts of the program or of its user.
        let own = ["StateMachines", "Deltas", "TrebuchetCLI", "ClientGenerator"]
        guard file.path.hasPrefix("Sources/"), !own.contains(file.module ?? "") else { return [] }
        let echo =
            /\\\(.*[^8]\.prefix\((?:[0-9_]+|[\w.]*longest\w*)\)\)|String\([\w.]+\.prefix\((?:[0-9_]+|[\w.]*longest\w*)\)\)/
        return scan(file, file.uncommented, for: echo) { "\($0): write prefix(bytes:), which is a limit" }
            .filter {
                !file.uncommented[$0.line! - 1].contains(
                    /(?:utf8|bytes|body|text|base64)(?:\([^)]*\))?\.prefix\(|decoding:/)
            }
    }

    /// A test's name is a sentence: at least two words.
    static func namelessTests(in file: SourceText) -> [Finding] {
        let code = file.uncommented.joined(separator: "\n")
        let blanked = file.code.joined(separator: "\n")
        // The attribute is searched in the blanked code, its name in the original; both have the same offsets.
        return blanked.matches(of: /[@]Test\b/).compactMap { match in
            let offset = blanked.utf8.distance(from: blanked.startIndex, to: match.range.lowerBound)
            let attribute = code[code.utf8.index(code.startIndex, offsetBy: offset)...]
            if attribute.prefixMatch(of: /[@]Test\s*\(\s*"[^"\s]+\s[^"]+"/) != nil { return nil }
            let line = blanked[..<match.range.lowerBound].count { $0 == "\n" } + 1
            return Finding(path: file.path, line: line, message: "a test's name is a sentence: @Test(\"what holds\")")
        }
    }

    /// Waiting for time to pass makes a test slow on a fast machine and wrong on a slow one.
    static func sleeps(in file: SourceText) -> [Finding] {
        guard !file.identifiers.isDisjoint(with: ["sleep", "usleep", "nanosleep"]) else { return [] }
        let call = /(?:\bTask|\bThread|Clock\(\))\s*\.\s*sleep\b|(?:^|[^.\w])(?:u|nano)?sleep\s*\(/
        return scan(file, file.code, for: call) {
            "\($0.drop { !$0.isLetter }): wait for the thing itself, or use the manual clock"
        }
        .filter { !file.code[$0.line! - 1].contains(/\bfunc\s+sleep\b/) }
    }

    private static func scan<Output>(
        _ file: SourceText, _ lines: [String], for pattern: Regex<Output>, message: (Substring) -> String
    ) -> [Finding] {
        // Simple, because Unicode's own word boundary treats `actor.assumeIsolated` as one word.
        let pattern = pattern.wordBoundaryKind(.simple)
        return zip(1..., lines).compactMap { number, line in
            guard let match = line.firstMatch(of: pattern) else { return nil }
            return Finding(path: file.path, line: number, message: message(line[match.range]))
        }
    }
}

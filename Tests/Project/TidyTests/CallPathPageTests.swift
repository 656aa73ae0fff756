import Foundation
import Testing

/// Compares the tables of Docs/Internals/CallPaths.md with the code.
struct CallPathPageTests {
    private static let pageURL = Repository.root.appending(path: "Docs/Internals/CallPaths.md")

    @Test("each step of a call path is declared in its file and called by the step that the table names")
    func steps() throws {
        let page = try String(contentsOf: Self.pageURL, encoding: .utf8)
        let problems = CallPathPage.problems(in: page, files: try Repository.current.get().files)
        for problem in problems { Issue.record("\(problem)") }
    }

    @Test("the page has three paths, few steps of which are called from outside, and names all files of a call")
    func size() throws {
        let page = try String(contentsOf: Self.pageURL, encoding: .utf8)
        let paths = CallPathPage.paths(in: page)
        #expect(paths.count == 3)
        for path in paths {
            #expect(path.steps.count >= 40)
            #expect(path.steps.filter { $0.from == nil }.count <= 7)
        }
        let call = try #require(paths.first)
        #expect(call.files.count >= 50)
    }

    @Test("the nine paths of a call are the cases of CallPath, and each names a function of the server")
    func ninePaths() throws {
        let files = try Repository.current.get().files.filter { $0.path.hasPrefix("Sources/Server/Trebuchet/Server/") }
        let rows = try Self.rows(of: "The nine paths of a call")
        #expect(rows.count == 9)
        #expect(try Set(rows.map { $0[0] }) == Self.cases(of: "CallPath", in: files))
        for row in rows {
            let function = try #require(row.count > 2 ? row[2] : nil)
            let isDeclared = files.contains { !CallPathPage.bodies(of: function, in: $0).isEmpty }
            #expect(isDeclared, "\(function)")
        }
    }

    @Test("the phases of a call are the cases of Phase")
    func phases() throws {
        let files = try Repository.current.get().files.filter { $0.path.hasSuffix("/Calls/InFlightCall.swift") }
        let rows = try Self.rows(of: "The phases of a call")
        #expect(rows.count == 11)
        #expect(try Set(rows.map { $0[0] }) == Self.cases(of: "Phase", in: files))
    }

    /// The cells of the table of a section.
    private static func rows(of title: String) throws -> [[String]] {
        let page = try String(contentsOf: pageURL, encoding: .utf8)
        let section = try #require(CallPathPage.sections(of: page).first { $0.hasPrefix(title) })
        return section.split(separator: "\n").filter { $0.hasPrefix("|") }.dropFirst(2).map {
            CallPathPage.cells(of: $0)
        }
    }

    /// The cases of an enumeration, which is declared in one of the files.
    private static func cases(of name: String, in files: [SourceText]) throws -> Set<String> {
        let file = try #require(
            files.first { $0.code.contains { $0.contains(/\benum (\w+)\b/) && $0.contains("enum \(name)") } })
        let lines = file.code.drop { !$0.contains("enum \(name)") }
        let indent = lines.first?.prefix { $0 == " " } ?? ""
        let body = lines.dropFirst().prefix { $0 != indent + "}" }
        return Set(body.compactMap { $0.firstMatch(of: /^ *case (\w+)/).map { String($0.1) } })
    }

    @Test(
        "a step that does not match the code is found",
        arguments: [
            ("| 1 | `first` | `A/Chain.swift` | code | e |\n| 2 | `second` | `A/Chain.swift` | 1 | e |", 0),
            ("| 1 | `first` | `A/Chain.swift` | code | e |\n| 2 | `third` | `A/Chain.swift` | 1 | e |", 1),
            ("| 1 | `second` | `A/Chain.swift` | code | e |\n| 2 | `third` | `A/Chain.swift` | 1 | e |", 0),
            ("| 1 | `third` | `A/Chain.swift` | code | e |\n| 2 | `Chain.init` | `A/Chain.swift` | 1 | e |", 0),
            ("| 1 | `second` | `A/Chain.swift` | code | e |\n| 2 | `Chain.init` | `A/Chain.swift` | 1 | e |", 1),
            ("| 1 | `fourth` | `A/Chain.swift` | code | e |", 1),
            ("| 1 | `first` | `A/Other.swift` | code | e |", 1),
            ("| 2 | `first` | `A/Chain.swift` | code | e |", 1),
            ("| 1 | `second` | `A/Chain.swift` | 1 | e |", 1),
            ("| 1 | `first` | `A/Chain.swift` | e |", 1),
            ("It uses `A/Chain.swift` and `A/Other.swift`.", 1),
        ])
    func finds(table: String, count: Int) {
        let file = SourceText(
            path: "Sources/G/A/Chain.swift",
            """
            protocol Steps {
                func fourth()
                func first()
            }
            struct Chain: Steps {
                init() {}
                func first() { if true { second() } }
                func second() {
                    // first()
                    [1].forEach(third)
                }
                func third(_ number: Int) { _ = Chain() }
            }
            """)
        let problems = CallPathPage.problems(in: "# Page\n\n## Path\n\n\(table)\n", files: [file])
        #expect(problems.count == count, "\(problems)")
    }
}

/// The page of call paths, read from its tables.
private enum CallPathPage {
    struct Step {
        let number: Int
        let function: String
        /// `send`, or `Message` for `Message.init`.
        let call: String
        let file: String
        /// The number of the step whose function calls this one; nil for a caller outside the table.
        let from: Int?
    }

    struct Path {
        let steps: [Step]
        /// All files that the section names.
        let files: Set<String>
    }

    static func sections(of page: String) -> [Substring] { Array(page.split(separator: "\n## ").dropFirst()) }

    static func cells(of row: Substring) -> [String] {
        row.split(separator: "|").map { $0.trimmingCharacters(in: CharacterSet(charactersIn: "` ")) }
    }

    /// The sections that have steps.
    static func paths(in page: String) -> [Path] {
        sections(of: page).map { section in
            let steps = rows(of: section).compactMap { Self.step($0) }
            return Path(steps: steps, files: files(in: section))
        }
        .filter { !$0.steps.isEmpty }
    }

    private static func rows(of section: Substring) -> [Substring] {
        section.split(separator: "\n").filter { row in
            guard row.hasPrefix("|"), let first = cells(of: row).first else { return false }
            return Int(first) != nil
        }
    }

    private static func step(_ row: Substring) -> Step? {
        let cells = cells(of: row)
        guard cells.count == 5, let number = Int(cells[0]), let function = cells[1].split(separator: ".").last
        else { return nil }
        let from = Int(cells[3])
        guard from != nil || ["code", "socket", "turn", "task"].contains(cells[3]) else { return nil }
        return Step(
            number: number, function: String(function), call: String(cells[1].prefix { $0 != "." }), file: cells[2],
            from: from)
    }

    private static func files(in section: Substring) -> Set<String> {
        Set(section.matches(of: /`(\w+\/[\w+]+\.swift)`/).map { String($0.output.1) })
    }

    static func problems(in page: String, files: [SourceText]) -> [String] {
        let sources = Dictionary(grouping: files.filter { $0.path.hasPrefix("Sources/") }) {
            "\($0.module ?? "")/\($0.name)"
        }
        var problems: [String] = []
        for section in sections(of: page) {
            for file in self.files(in: section).sorted() where sources[file]?.count != 1 {
                problems.append("\(file): \(sources[file]?.count ?? 0) files have this name")
            }
            var bodies: [Int: [String]] = [:]
            for (place, row) in zip(1..., rows(of: section)) {
                guard let step = Self.step(row) else {
                    problems.append("not a step: \(row)")
                    continue
                }
                if step.number != place { problems.append("step \(step.number) is in the place of step \(place)") }
                guard let source = sources[step.file]?.first else { continue }
                let found = self.bodies(of: step.function, in: source)
                bodies[step.number] = found
                if found.isEmpty { problems.append("\(step.number): \(step.file) has no function \(step.function)") }
                guard let from = step.from else { continue }
                if from >= step.number || !(bodies[from] ?? []).contains(where: { calls(step.call, in: $0) }) {
                    problems.append("\(step.number): step \(from) does not call \(step.call)")
                }
            }
        }
        return problems
    }

    /// Returns true if a body calls a function or passes it to another one.
    private static func calls(_ function: String, in body: String) -> Bool {
        guard let call = try? Regex("\\b\(function)\\b(?:<[^>()]*>)?\\s*[({)]") else { return false }
        return body.contains(call.wordBoundaryKind(.simple))
    }

    /// The bodies of all functions of a name in a file.
    static func bodies(of function: String, in file: SourceText) -> [String] {
        let code = Array(file.code.joined(separator: "\n").utf8)
        let head = Array((function == "init" ? "init" : "func \(function)").utf8)
        var bodies: [String] = []
        for start in code.indices where code[start] == head[0] {
            let end = start + head.count
            guard end < code.count, code[start..<end].elementsEqual(head), !isWord(code[end]),
                start == 0 || !isWord(code[start - 1]) && code[start - 1] != UInt8(ascii: "."),
                let body = body(after: end, in: code)
            else { continue }
            bodies.append(body)
        }
        return bodies
    }

    /// The body of the function whose name ends before `position`; nil for a requirement of a protocol.
    private static func body(after position: Int, in code: [UInt8]) -> String? {
        var parentheses = 0
        var braces = 0
        var start = position
        for index in position..<code.count {
            switch code[index] {
            case UInt8(ascii: "(") where braces == 0: parentheses += 1
            case UInt8(ascii: ")") where braces == 0: parentheses -= 1
            case UInt8(ascii: "{") where parentheses == 0:
                if braces == 0 {
                    let head = String(decoding: code[position..<index], as: UTF8.self)
                    if head.contains("func ") || head.contains("var ") { return nil }
                    start = index
                }
                braces += 1
            case UInt8(ascii: "}") where parentheses == 0:
                braces -= 1
                if braces < 0 { return nil }
                if braces == 0 { return String(decoding: code[start...index], as: UTF8.self) }
            default: break
            }
        }
        return nil
    }

    private static func isWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

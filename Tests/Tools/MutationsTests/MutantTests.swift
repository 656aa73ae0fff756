import Testing

@testable import Mutations

/// A statement, and its mutated lines.
private struct Row: CustomTestStringConvertible {
    let source: String
    /// The changed lines, without surrounding spaces; "" for a removed line.
    let mutants: [String]

    init(_ source: String, _ mutants: String...) {
        self.source = source
        self.mutants = mutants
    }

    var testDescription: String { source }
}

@Suite("Mutants")
struct MutantTests {
    private static func mutants(_ body: String) -> [Mutant] {
        MutantFinder.mutants(in: body, file: "Sources/A/B.swift")
    }

    private static let bodies: [Row] = [
        Row("return a < b", "return a >= b", "return a <= b"),
        Row("return a == b && c", "return a == b || c", "return a != b && c"),
        Row("guard a else { return }", ""),
        Row("guard a, !b else { return }", ""),
        Row("guard let a, b else { return }", "guard let a, true else { return }"),
        Row("guard let a else { return }"),
        Row("send(a)", ""),
        Row("try await one.send(a)", ""),
        Row("_ = send(a)", ""),
        Row("let b = send(a)"),
        Row("let b = a.map { send($0) }"),
        Row("b = { send(a) }"),
        Row("if a { b = c } else { c = b }", "if !a { b = c } else { c = b }"),
        Row("if !a { b = c }", "if a { b = c }"),
        Row("if await a.b() { b = c }", "if !(await a.b()) { b = c }"),
        Row("if a < b { b = c }", "if a >= b { b = c }", "if a <= b { b = c }"),
        Row("if let a, b { b = c }", "if let a, true { b = c }"),
        Row("return a ? b : c", "return !a ? b : c"),
        Row("return 5", "return 6"),
        Row("return 0xff", "return 0xfe"),
        Row("return 65_535", "return 65534"),
        Row("return 2.5", "return 3.5"),
        Row("return -1", "return -2"),
        Row("return true", "return false"),
        Row("switch a { case 5: b = c; default: break }"),
        Row(#"throw Error("more than \(a + 5)")"#),
        Row("precondition(a < 5)"),
        Row("fatalError()"),
        Row("bytes.reserveCapacity(5)"),
        Row("let b = Buffer(capacity: 5)"),
        Row("@State var b = 5"),
    ]

    @Test("in a function's body each mutant changes one thing", arguments: bodies)
    private func changesOneThing(row: Row) {
        let source = "func f() {\n    \(row.source)\n}\n"
        let mutants = Self.mutants(source)
        let changes = mutants.map { $0.difference(in: source) }
        #expect(changes.map { $0.after.map { String($0.drop(while: { $0 == " " })) }.joined() } == row.mutants)
        #expect(mutants.allSatisfy { $0.function == "f" && $0.line == 2 })
    }

    @Test(
        "code compiled by other modules or macros, default arguments, raw values and platform conditions are not mutated",
        arguments: [
            "@inlinable func f() -> Int { 5 }", "@inline(__always) func f() -> Int { 5 }", "func f(a: Int = 5) {}",
            "enum A: Int { case a = 5 }", "@available(macOS 5, *) func f() {}", "#if a\nlet b = 5\n#endif",
            "@State var a = 5", "func f() { #expect(a < 5) }", "protocol A { func b() }",
            "struct A { var b: Int { @inlinable get { 5 } } }",
        ])
    func leftAlone(source: String) {
        #expect(Self.mutants(source).isEmpty)
    }

    @Test("a single expression that is a value is not removed")
    func values() {
        #expect(Self.mutants("func f() -> Int { g() }").isEmpty)
        #expect(Self.mutants("var f: Int { g() }").isEmpty)
        #expect(Self.mutants("func f() { g() }").map(\.kind) == [.uncalled])
        #expect(Self.mutants("var f: Int { get { g() } set { g() } }").map(\.kind) == [.uncalled])
    }

    @Test("a closure's only call is removed where its value is unused")
    func closures() {
        #expect(Self.mutants("func f() { run { g() } }").map(\.kind) == [.uncalled, .uncalled])
        #expect(Self.mutants("func f() { run(then: { g() }) }").map(\.kind) == [.uncalled, .uncalled])
        #expect(Self.mutants("func f() { h = run { g() } }").isEmpty)
        #expect(Self.mutants("func f() { h = run { g(); h() } }").count == 2)
    }

    @Test("a mutant names its enclosing declarations, and its index among equal ones")
    func names() {
        let mutants = Self.mutants("extension A.B { struct C { let d = 5; func e() { let x = 5, y = 5 } } }")
        #expect(mutants.map(\.function) == ["A.B.C.d", "A.B.C.e", "A.B.C.e"])
        #expect(mutants.map(\.occurrence) == [0, 0, 1])
    }

    @Test("mutants are sampled by the seed alone, from all files and kinds, without overlap")
    func sample() {
        let mutants = (1...9).flatMap { file in
            MutantFinder.mutants(
                in: "func f() {\n" + (1...20).map { "    if a < \($0) { g(\($0)) }\n" }.joined() + "}",
                file: "Sources/A/\(file).swift")
        }
        let drawn = Sample.draw(40, from: mutants, seed: 7)
        #expect(drawn == Sample.draw(40, from: mutants, seed: 7))
        #expect(drawn != Sample.draw(40, from: mutants, seed: 8))
        #expect(Set(drawn.map(\.file)).count == 9)
        #expect(Set(drawn.map(\.kind)).count == 4)
        #expect((34...40).contains(drawn.count))
        #expect(Set(drawn.map { "\($0.file) \($0.range)" }).count == drawn.count)
        #expect(Sample.draw(1_000, from: mutants, seed: 7).count == mutants.count - 9 * 20)
    }
}

@Suite("Schemata")
struct SchemataTests {
    /// All mutants of a source at once, in order; of two at one position the first.
    private static func rewritten(_ source: String) -> String {
        var places: Set<Range<Int>> = []
        let mutants = MutantFinder.mutants(in: source, file: "Sources/A/B.swift").filter {
            places.insert($0.range).inserted
        }
        return Schemata(
            source: source,
            mutants: Dictionary(uniqueKeysWithValues: mutants.enumerated().map { ($0.offset + 1, $0.element) })
        )
        .text
    }

    static let rows = [
        ("if a < b {}", "if (isMutantActive(1) ? (a >= b) : (a < b)) {}"),
        (
            "guard a, try b() else { return }",
            "guard (isMutantActive(1) ? true : (a)), (isMutantActive(1) ? true : (try b())) else { return }"
        ),
        ("guard let a, b else { return }", "guard let a, (isMutantActive(1) ? true : (b)) else { return }"),
        ("if a {} else {}", "if (isMutantActive(1) ? !(a) : (a)) {} else {}"),
        ("try await a.b()", "if !isMutantActive(1) { try await a.b() }"),
        ("return 5", "return (isMutantActive(1) ? 6 : 5)"),
        ("a(5)", "if !isMutantActive(1) { a((isMutantActive(2) ? 6 : 5)) }"),
        (
            "if a < 5 {}",
            "if (isMutantActive(1) ? (a >= (isMutantActive(2) ? 6 : 5)) : (a < (isMutantActive(2) ? 6 : 5))) {}"
        ),
    ]

    @Test("each mutant is compiled in behind a condition, also inside another one", arguments: rows)
    func text(source: String, expected: String) {
        #expect(Self.rewritten("func f() {\n    \(source)\n}\n") == "func f() {\n    \(expected)\n}\n")
    }

    @Test("without mutants nothing is changed")
    func none() {
        #expect(Schemata(source: "let a = \"ä\" // 5\n", mutants: [:]).text == "let a = \"ä\" // 5\n")
    }

    @Test("a compiler error is attributed to the mutants around its line, else to the nearest")
    func suspects() {
        let source = "func f() {\n    a(\n        5)\n\n\n\n    b()\n}\n"
        let mutants = MutantFinder.mutants(in: source, file: "Sources/A/B.swift")
        let schemata = Schemata(
            source: source,
            mutants: Dictionary(uniqueKeysWithValues: mutants.enumerated().map { ($0.offset, $0.element) }))
        #expect(Set(schemata.suspects(line: 3)) == [0, 1])
        #expect(schemata.suspects(line: 2) == [0])
        #expect(schemata.suspects(line: 6) == [2])
    }
}

import Testing

struct TrapRulesTests {
    private func findings(_ text: String, known: Int? = nil, path: String = "Sources/Actors/TrebuchetWire/A.swift")
        -> [Finding]
    {
        TrapRules.findings(in: [SourceText(path: path, text)], known: known.map { [path: $0] } ?? [:])
    }

    @Test(
        "a trap is found in modules that external data reaches",
        arguments: [
            "precondition(a > 0)", "guard b else { fatalError() }", "let a = try! b()", "let a = b as! C",
            "Dictionary(uniqueKeysWithValues: a)", "preconditionFailure(\"\\(try! a())\")",
        ])
    func found(line: String) {
        #expect(findings("let z = 1\n" + line).first?.line == 2)
        #expect(findings(line, path: "Sources/State/StateMachines/A.swift").isEmpty)
        #expect(findings(line, path: "Tests/Base/ATests/A.swift").isEmpty)
    }

    @Test("an explained trap, one in a string and the known ones are accepted")
    func allowed() {
        #expect(findings("// unreachable from data: a is counted here\nprecondition(a > 0)").isEmpty)
        #expect(findings("let a = \"as! fatalError(\" // try! it").isEmpty)
        #expect(findings("let a = b as? C").isEmpty)
        #expect(findings("a as! B; c as! D", known: 2).isEmpty)
    }

    @Test("a count lower than the known one must be updated")
    func fewer() {
        #expect(findings("a as! B", known: 2).count == 1)
        #expect(findings("", known: 1).count == 1)
    }
}

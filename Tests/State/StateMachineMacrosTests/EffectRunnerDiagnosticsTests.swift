import Testing

@Suite("Diagnostics of @ComposableEffectRunner, with token and fix-it")
struct EffectRunnerDiagnosticsTests {
    /// The single diagnostic of the source.
    private func finding(_ source: String) throws -> Expansion.Finding {
        let expansion = Expansion(source)
        #expect(expansion.findings.count == 1)
        return try #require(expansion.findings.first)
    }

    @Test("a type that cannot be a machine is diagnosed", arguments: ["class", "enum"])
    func kind(kind: String) throws {
        let finding = try finding("@ComposableEffectRunner \(kind) A {}")
        #expect(finding.message == "'@ComposableEffectRunner' can only be attached to a struct or an actor")
        #expect(finding.token == kind)
        #expect(finding.fixes.map(\.source) == ["\(kind) A {}"])
    }

    @Test(
        "an argument that cannot be read at compile time is diagnosed",
        arguments: ["A.isComposable", "isComposable", "!true"])
    func argument(argument: String) throws {
        func source(_ argument: String) -> String {
            "@ComposableEffectRunner(isBodyComposable: \(argument)) struct A { enum IOEffect { case a } }"
        }
        let finding = try finding(source(argument))
        #expect(
            finding.message
                == "'isBodyComposable' must be the literal 'true' or 'false', because it is read when the code is compiled"
        )
        #expect(finding.fixes.map(\.title) == ["use 'true'", "use 'false'"])
        #expect(finding.fixes.map(\.source) == [source("true"), source("false")])
    }

    @Test("an unknown argument is diagnosed")
    func unknownArgument() throws {
        let finding = try finding("@ComposableEffectRunner(Child.Input.self) struct A { enum IOEffect { case a } }")
        #expect(
            finding.message
                == "'@ComposableEffectRunner' takes one argument, 'isBodyComposable:', and not 'Child.Input.self'")
    }

    @Test("a machine without effects to run is diagnosed")
    func noEffects() throws {
        let finding = try finding("@ComposableEffectRunner struct A {\n    var b = 1\n}")
        #expect(finding.message == "'@ComposableEffectRunner' requires an enum 'IOEffect' inside 'A'")
        #expect(finding.token == "A")
        #expect(
            finding.fixes.map(\.source) == [
                "@ComposableEffectRunner struct A {\n    enum IOEffect {\n        case <#effect#>\n    }\n    var b = 1\n}"
            ])
    }

    @Test("effects with cases declared elsewhere are diagnosed")
    func alias() throws {
        let finding = try finding("@ComposableEffectRunner struct A { typealias IOEffect = Other }")
        #expect(
            finding.message == "'@ComposableEffectRunner' cannot see the cases of 'Other': declare 'IOEffect' as an "
                + "enum inside 'A', or as 'Never'")
        #expect(finding.token == "Other")
    }

    @Test("an enum without cases is diagnosed")
    func empty() throws {
        let finding = try finding("@ComposableEffectRunner struct A {\n    enum IOEffect {}\n}")
        #expect(finding.message == "'IOEffect' has no cases: use 'Never' for a machine without effects")
        #expect(
            finding.fixes.map(\.source) == ["@ComposableEffectRunner struct A {\n    typealias IOEffect = Never\n}"])
    }

    @Test("cases with the names of composed effects are diagnosed")
    func clash() throws {
        let finding = try finding("@ComposableEffectRunner struct A {\n    enum IOEffect { case merge(Int) }\n}")
        #expect(finding.token == "merge")
        #expect(finding.fixes.map(\.title) == ["rename it to 'mergeEffects'"])
    }

    @Test("two cases with one name, which Swift's patterns confuse, are diagnosed")
    func overload() throws {
        func source(_ name: String) -> String {
            "@ComposableEffectRunner struct A {\n    enum IOEffect {\n        case fetch(id: Int)\n"
                + "        case \(name)(name: String)\n    }\n}"
        }
        let finding = try finding(source("fetch"))
        #expect(
            finding.message == "'@ComposableEffectRunner' found two cases named 'fetch': "
                + "rename one of them")
        #expect(finding.token == "fetch")
        #expect(finding.line == 4)
        #expect(finding.notes == ["the other 'fetch' is here"])
        #expect(finding.fixes.map(\.source) == [source("fetchName")])
    }

    @Test("two cases for one method are diagnosed")
    func collision() throws {
        let finding = try finding("@ComposableEffectRunner struct A {\n    enum IOEffect { case load, Load }\n}")
        #expect(finding.message == "the cases 'load' and 'Load' are both run by 'runLoad': rename one of them")
        #expect(finding.token == "Load")
        #expect(finding.notes == ["'load' is here"])
    }

    @Test("children that would not run are diagnosed")
    func unusedBody() throws {
        let rest =
            " struct A {\n    enum IOEffect { case a }\n    var nestedBody: some Reducer<State, Action> { B() }\n}"
        let finding = try finding("@ComposableEffectRunner" + rest)
        #expect(!finding.isError)
        #expect(finding.message == "'nestedBody' is used only with 'isBodyComposable: true'")
        #expect(
            finding.fixes.map(\.source) == ["@ComposableEffectRunner(isBodyComposable: true)" + rest])
    }
}

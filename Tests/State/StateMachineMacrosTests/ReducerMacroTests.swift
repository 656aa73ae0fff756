import Testing

@Suite("@Reducer and @ObservableState")
struct ReducerMacroTests {
    @Test("@Reducer turns a struct into a reducer, with actions for key paths and a built body")
    func reducer() {
        let expansion = Expansion(
            """
            @Reducer struct Feature {
                @ObservableState struct State {}
                enum Action { case tap }
                var body: some Reducer<State, Action> { A() }
            }
            """)
        #expect(expansion.findings.isEmpty)
        #expect(expansion.contains("extension Feature: StateMachines.Reducer {"))
        #expect(expansion.text.contains("extension Feature.State: StateMachines.ObservableState"))
        #expect(expansion.contains("var tap: StateMachines.AnyCasePath<Action, Swift.Void> {"))
        #expect(expansion.text.contains("@StateMachines.ReducerBuilder<Self.State, Self.Action>"))
    }

    @Test("an existing builder is kept")
    func ownBuilder() {
        let expansion = Expansion(
            "@Reducer struct A { @ReducerBuilder<State, Action> var body: some Reducer<State, Action> { A() } }")
        #expect(!expansion.text.contains("@StateMachines.ReducerBuilder"))
    }

    @Test("an invalid type is diagnosed", arguments: [("Reducer", "actor"), ("ObservableState", "class")])
    func wrongKind(macro: String, kind: String) throws {
        let expansion = Expansion("@\(macro) \(kind) A {}")
        let finding = try #require(expansion.findings.first)
        #expect(expansion.findings.count == 1)
        #expect(finding.token == kind)
        #expect(finding.message.hasPrefix("'@\(macro)' can only be attached to a struct"))
        #expect(finding.fixes.map(\.source) == ["\(kind) A {}"])
    }

    @Test("a missing type that a body names is diagnosed once", arguments: ["State", "Action"])
    func missingType(kind: String) {
        let other = kind == "State" ? "enum Action { case add }" : "struct State {}"
        let expansion = Expansion(
            "@Reducer\nstruct Feature {\n    \(other)\n    var body: some Reducer<State, Action> { EmptyReducer() }\n}")
        #expect(
            expansion.findings.map(\.message) == [
                "'@Reducer' requires a type '\(kind)' inside 'Feature', because 'body' is a reducer of it; "
                    + "if it is declared in an extension, write 'Feature.\(kind)' in the type of 'body'"
            ])
        #expect(!expansion.text.contains("extension Feature: StateMachines.Reducer"))
        #expect(expansion.findings.first?.fixes.first?.source.contains("\(kind) {\n    }") == true)
    }

    @Test(
        "the types of a reducer may be declared elsewhere",
        arguments: [
            "typealias State = Int\n    typealias Action = Bool\n    var body: some ReducerOf<Self> { EmptyReducer() }",
            "var body: some Reducer<Int, Bool> { EmptyReducer() }",
            "var body: some Reducer<Feature.State, Feature.Action> { EmptyReducer() }",
            "var body: some ReducerOf<Feature> { EmptyReducer() }",
            "func reduce(into state: inout Int, action: Bool) -> Effect<Bool> { .none }",
        ])
    func otherTypes(members: String) {
        let expansion = Expansion("@Reducer\nstruct Feature {\n    \(members)\n}")
        #expect(expansion.findings.isEmpty)
        #expect(expansion.text.contains("extension Feature"))
    }

    @Test(
        "members in a public extension are public, unless the type states otherwise",
        arguments: [
            ("@CasePathable", "indirect enum A { case a(Int) }", ["struct AllCasePaths", "static var allCasePaths"]),
            ("@ComposableEffect", "enum A { case a(Int) }", ["func asComposableEffect", "static func merge"]),
            ("@StateMachine", "struct A: StateMachine { enum Input { case a } }", ["typealias Action"]),
            (
                "@ComposableStateMachine",
                """
                struct A {
                    public struct State { @NestedState var c = C.State() }
                    public enum Input { @Forward(C.Input.a) case a }
                }
                """, ["var body", "var nestedBody"]
            ),
            (
                "@ComposableEffectRunner(isBodyComposable: true)", "actor A { enum IOEffect { case a } }",
                ["var body", "func runIOEffect", "protocol EffectRunner"]
            ),
        ])
    func publicExtension(attribute: String, declaration: String, names: [String]) {
        func written(_ beginning: String, _ modifier: String, _ end: String) -> [String] {
            let expansion = Expansion("\(beginning) {\n\(attribute) \(modifier)\(declaration)\n\(end)")
            #expect(expansion.findings.filter(\.isError).isEmpty)
            return expansion.lines.filter { line in names.contains { line.contains($0) } }
        }
        let lines = written("public extension Space", "", "}")
        #expect(lines.count == names.count)
        for line in lines { #expect(line.hasPrefix("public ")) }
        let others =
            written("extension Space", "", "}") + written("public extension Space", "internal ", "}")
            + written("public extension Space { struct Inner", "", "} }")
        #expect(others.count == 3 * lines.count)
        for line in others { #expect(!line.hasPrefix("public ")) }
    }
}

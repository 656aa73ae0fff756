import Testing

@Suite("@Reducer and @ObservableState")
struct ReducerMacroTests {
    @Test("make a reducer of a struct, with actions that key paths reach and a body that is built")
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

    @Test("leave a builder alone that is there")
    func ownBuilder() {
        let expansion = Expansion(
            "@Reducer struct A { @ReducerBuilder<State, Action> var body: some Reducer<State, Action> { A() } }")
        #expect(!expansion.text.contains("@StateMachines.ReducerBuilder"))
    }

    @Test(
        "tell of a type that has changes of its own", arguments: [("Reducer", "actor"), ("ObservableState", "class")])
    func wrongKind(macro: String, kind: String) throws {
        let expansion = Expansion("@\(macro) \(kind) A {}")
        let finding = try #require(expansion.findings.first)
        #expect(expansion.findings.count == 1)
        #expect(finding.token == kind)
        #expect(finding.message.hasPrefix("'@\(macro)' can only be attached to a struct"))
        #expect(finding.fixes.map(\.source) == ["\(kind) A {}"])
    }
}

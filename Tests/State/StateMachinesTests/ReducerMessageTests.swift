import TestSupport
import Testing

/// Compiler diagnostics of invalid and valid reducers.
@Suite(.timeLimit(.minutes(5))) struct ReducerMessageTests {
    private func errors(state: String, child: String = "struct State { var number = 0 }") async throws -> [String] {
        try await SwiftCompiler().errors(
            in: """
                import StateMachines
                struct Child: Reducer {
                    \(child)
                    enum Action { case tap }
                    func reduce(into state: inout State, action: Action) -> Effect<Action> { .none }
                }
                @Reducer struct Parent {
                    \(state)
                    enum Action { case child(Child.Action) }
                    var body: some Reducer<State, Action> {
                        Scope(state: \\.child, action: \\.child) { Child() }
                    }
                }
                """)
    }

    @Test(
        "a scope without a matching child state has one clear error",
        arguments: [
            "struct State { var other = 1 }", "struct State { var child = 1 }",
            "struct State { let child = Child.State() }",
            "enum State { case child(Child.State) }",
        ])
    func missingChild(state: String) async throws {
        let errors = try await errors(state: state)
        #expect(errors.count == 1, "\(errors)")
        let advice = "the parent's 'State' has no 'var' of this name with the type of the child's 'State'"
        #expect(errors.first?.contains(advice) == true, "\(errors)")
    }

    @Test(
        "a scope with a matching child state compiles",
        arguments: [
            "struct State { var child = Child.State() }", "@CasePathable enum State { case child(Child.State) }",
        ])
    func child(state: String) async throws {
        #expect(try await errors(state: state) == [])
    }

    @Test("a reducer's state may be in an extension, when its body names the type")
    func stateElsewhere() async throws {
        let errors = try await SwiftCompiler().errors(
            in: """
                import StateMachines
                @Reducer struct Feature {
                    enum Action { case tap }
                    var body: some Reducer<Feature.State, Action> {
                        Reduce { state, action in
                            state.taps += 1
                            return .none
                        }
                    }
                }
                extension Feature { struct State { var taps = 0 } }
                """)
        #expect(errors == [])
    }
}

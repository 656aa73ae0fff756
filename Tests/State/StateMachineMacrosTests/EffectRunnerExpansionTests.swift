import Testing

@Suite("@ComposableEffectRunner")
struct EffectRunnerExpansionTests {
    private func machine(
        _ cases: String, kind: String = "struct Feature", attribute: String = "@ComposableEffectRunner",
        extra: String = ""
    ) -> Expansion {
        Expansion("\(attribute)\n\(kind): StateMachine {\n    enum IOEffect {\n        \(cases)\n    }\n\(extra)}")
    }

    @Test("@ComposableEffectRunner generates the protocol, the dispatcher and the application of effects")
    func members() {
        let expansion = machine("case fetch(Int)\n        case log")
        #expect(expansion.findings.isEmpty)
        #expect(
            expansion.contains(
                """
                protocol EffectRunner {
                    func runFetch(_ value: Int) -> Feature.IOResultStream
                    func runLog() -> Feature.IOResultStream
                }
                """))
        #expect(
            expansion.contains(
                """
                func applyIOEffect(_ ioEffect: IOEffect) -> StateMachines.Effect<Action> {
                    ioEffect.asComposableEffect().extract(self.results(of:))
                }
                """))
        #expect(
            expansion.contains(
                """
                func runIOEffect(_ ioEffect: IOEffect) -> IOResultStream {
                    switch ioEffect {
                    case .merge, .concat:
                """))
        #expect(expansion.contains("case .fetch(let value0):\n    return self.runFetch(value0)"))
        #expect(expansion.contains("case .log:\n    return self.runLog()"))
        #expect(expansion.text.contains("asComposableEffect() -> StateMachines.ComposableEffect<Self>"))
        #expect(!expansion.text.contains("nestedBody"))
    }

    @Test("a composable body runs the children first")
    func body() {
        let expansion = machine("case log", attribute: "@ComposableEffectRunner(isBodyComposable: true)")
        #expect(
            expansion.contains(
                """
                @StateMachines.ReducerBuilder<Self.State, Self.Action>
                var body: some StateMachines.Reducer<State, Action> {
                    self.nestedBody
                    StateMachines.StateMachineReducer(machine: self)
                }
                """))
        let plain = machine("case log", attribute: "@ComposableEffectRunner(isBodyComposable: false)")
        #expect(!plain.text.contains("var body"))
    }

    @Test(
        "generated members are as visible as the machine",
        arguments: ["public ", "package ", "", "fileprivate ", "private "])
    func access(access: String) {
        let expansion = machine("case log", kind: "\(access)struct Feature")
        let written = ["public ", "package "].contains(access) ? access : ""
        #expect(expansion.contains("\(written)protocol EffectRunner {"))
        #expect(expansion.contains("\(written)func runIOEffect(_ ioEffect: IOEffect) -> IOResultStream {"))
    }

    @Test("parameters are named after the second name, the label, or their position")
    func parameters() {
        let expansion = machine("case a(id: Int, String), b(_ name: String), c(Int, Int), d(in: Int)")
        #expect(expansion.contains("func runA(_ id: Int, _ value1: String) -> Feature.IOResultStream"))
        #expect(expansion.contains("func runB(_ name: String) -> Feature.IOResultStream"))
        #expect(expansion.contains("func runC(_ value0: Int, _ value1: Int) -> Feature.IOResultStream"))
        #expect(expansion.contains("func runD(_ `in`: Int) -> Feature.IOResultStream"))
        #expect(expansion.contains("case .d(in: let value0):\n    return self.runD(value0)"))
    }

    @Test("names in backticks are supported")
    func backticks() {
        let expansion = machine("case `default`, `in`(Int)")
        #expect(expansion.contains("func runDefault() -> Feature.IOResultStream"))
        #expect(expansion.contains("case .`in`(let value0):\n    return self.runIn(value0)"))
    }

    @Test("the types of payloads are qualified outside the enum")
    func types() {
        let expansion = machine("struct Request {}\n        case load(Request?), all([Self])")
        #expect(expansion.contains("func runLoad(_ value: IOEffect.Request?) -> Feature.IOResultStream"))
        #expect(expansion.contains("func runAll(_ value: [IOEffect]) -> Feature.IOResultStream"))
    }

    @Test("the condition of a case is kept")
    func conditions() {
        let expansion = machine("case log\n        #if DEBUG\n        case probe\n        #endif")
        #expect(expansion.contains("#if (DEBUG)\nfunc runProbe() -> Feature.IOResultStream\n#endif"))
        #expect(expansion.contains("#if (DEBUG)\ncase .probe:\n    return self.runProbe()\n#endif"))
    }

    @Test("the methods of an actor may be isolated")
    func actors() {
        let expansion = machine("case fetch(Int)", kind: "actor Feature")
        #expect(expansion.contains("func runFetch(_ value: Int) async -> Feature.IOResultStream"))
        #expect(expansion.contains("nonisolated func runIOEffect(_ ioEffect: IOEffect) -> IOResultStream {"))
        #expect(expansion.text.contains(".deferred {"))
        #expect(expansion.text.contains("await self.runFetch(value0)"))
    }

    @Test("no protocol is generated where Swift does not allow one")
    func generics() {
        let expansion = machine("case fetch(T)", kind: "struct Feature<T: Sendable>")
        #expect(!expansion.text.contains("protocol"))
        #expect(expansion.contains("case .fetch(let value0):\n    return self.runFetch(value0)"))
        let nested = Expansion(
            "struct Outer<T> {\n@ComposableEffectRunner struct A: StateMachine {\nenum IOEffect { case a }\n}\n}")
        #expect(!nested.text.contains("protocol"))
    }

    @Test("nested declarations get attributes, but none twice")
    func attributes() {
        let expansion = machine("case log", extra: "    enum Action { case a }\n    enum IOResult { case b }\n")
        #expect(expansion.contains("var a: StateMachines.AnyCasePath<Action, Swift.Void> {"))
        #expect(expansion.contains("var b: StateMachines.AnyCasePath<IOResult, Swift.Void> {"))
        let marked = Expansion(
            "@ComposableEffectRunner struct A {\n@ComposableEffect enum IOEffect { case a }\n"
                + "@CasePathable enum Action { case b }\n}")
        #expect(marked.lines.count { $0 == "case merge([Self])" } == 1)
        #expect(marked.lines.count { $0.contains("struct AllCasePaths") } == 1)
    }

    @Test("nestedBody is built, so that it may have several children")
    func builder() {
        let expansion = machine(
            "case log", attribute: "@ComposableEffectRunner(isBodyComposable: true)",
            extra: "    var nestedBody: some Reducer<State, Action> {\n        A()\n        B()\n    }\n")
        #expect(expansion.lines.count { $0.contains("@StateMachines.ReducerBuilder<Self.State, Self.Action>") } == 2)
    }

    @Test("hand-written members are kept")
    func ownMembers() {
        let expansion = machine(
            "case log",
            extra: "    func runIOEffect(_ ioEffect: IOEffect) -> IOResultStream { .init { $0.finish() } }\n")
        #expect(!expansion.text.contains("switch ioEffect"))
        #expect(expansion.text.contains("func applyIOEffect"))
    }

    @Test("a machine without effects needs nothing")
    func noEffects() {
        let expansion = Expansion(
            "@ComposableEffectRunner(isBodyComposable: true) struct A: StateMachine { typealias IOEffect = Never }")
        #expect(expansion.findings.isEmpty)
        #expect(!expansion.text.contains("EffectRunner"))
        #expect(expansion.text.contains("var body"))
    }

    @Test("the parameters of a method get distinct names")
    func parameterNames() {
        let expansion = machine("case pair(Int, value0: Int)\n    case three(Int, value2: Int, value3_: Int, Int)")
        #expect(expansion.text.contains("func runPair(_ value0_: Int, _ value0: Int)"))
        #expect(
            expansion.text.contains("func runThree(_ value0: Int, _ value2: Int, _ value3_: Int, _ value3: Int)"))
    }

    @Test("a method may store the closures of its effect")
    func closures() {
        let expansion = machine(
            """
            case notify(@Sendable (Int) async -> Void)
                case plain((Int) -> Void, id: Int)
                case wrapped((@MainActor () -> Void))
                case maybe((() -> Void)?)
            """)
        #expect(expansion.text.contains("func runNotify(_ value: @escaping @Sendable (Int) async -> Void)"))
        #expect(expansion.text.contains("func runPlain(_ value0: @escaping (Int) -> Void, _ id: Int)"))
        #expect(expansion.text.contains("func runWrapped(_ value: @escaping (@MainActor () -> Void))"))
        #expect(expansion.text.contains("func runMaybe(_ value: (() -> Void)?)"))
    }
}

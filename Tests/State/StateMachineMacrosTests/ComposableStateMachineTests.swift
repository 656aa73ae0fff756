import Testing

@Suite("@StateMachine and @ComposableStateMachine")
struct ComposableStateMachineTests {
    private let machine = """
        @ComposableStateMachine
        public struct Screen: StateMachine {
            public struct State {
                @NestedState var counter = Counter.State()
                @NestedState var name: Names.Field.State
                var other = 0
            }
            public enum Input {
                @Forward(Counter.Input.set)
                case set(to: Int)
                @Forward(Counter.Input.increment)
                case tapped
                @ForwardValue(Names.Field.Input.self)
                case name(Names.Field.Input)
                case own
            }
            public enum IOResult {
                @Forward(Counter.IOResult.self)
                case counter(Counter.IOResult)
                @Forward(Names.Field.IOResult.saved)
                case saved(Int)
            }
        }
        """

    @Test("@StateMachine makes the events the actions, as visible as the machine")
    func stateMachine() {
        let expansion = Expansion(
            "@StateMachine\npublic struct Door: StateMachine {\n    public enum Input { case open }\n}")
        #expect(expansion.findings.isEmpty)
        #expect(
            expansion.contains("public typealias Action = StateMachines.StateMachineEvent<Input, IOResult>"))
        #expect(expansion.text.contains("struct AllCasePaths"))
    }

    @Test("@StateMachine on another type, and an existing action, are diagnosed")
    func stateMachineDiagnostics() {
        #expect(
            Expansion("@StateMachine\nenum Door {}").findings.map(\.message) == [
                "'@StateMachine' can only be attached to a struct or an actor"
            ])
        let own = Expansion("@StateMachine\nstruct Door {\n    enum Action { case open }\n}")
        #expect(own.findings.count == 1)
        #expect(own.findings.first?.line == 3)
    }

    @Test("each child gets a reducer, and events in both directions")
    func children() {
        let expansion = Expansion(machine)
        #expect(expansion.findings.isEmpty)
        #expect(
            expansion.contains(
                """
                StateMachines.NestedStateMachine<State, Action, Counter>(
                    state: \\.counter,
                    toChildAction: { action in
                        switch Action.map(action) {
                        case .input(.set(to: let value0)):
                            return .input(.set(to: value0))
                        case .input(.tapped):
                            return .input(.increment)
                        case .ioResult(.counter(let value0)):
                            return .ioResult(value0)
                        default:
                            return nil
                        }
                    },
                    fromChildAction: { action in
                        switch Counter.Action.map(action) {
                        case .ioResult(let value0):
                            return .ioResult(.counter(value0))
                        default:
                            return nil
                        }
                    },
                    child: {
                        Counter()
                    })
                """), "\(expansion.text)")
        #expect(expansion.contains("case .input(.name(let value0)):\nreturn .input(value0)"))
        #expect(expansion.contains("case .ioResult(.saved(let value0)):\nreturn .ioResult(.saved(value0))"))
        #expect(expansion.text.contains("public var body: some StateMachines.Reducer<State, Action>"))
    }

    @Test(
        "the body is left to the macro that runs effects", arguments: ["EffectComposition", "ComposableEffectRunner"])
    func together(other: String) {
        let expansion = Expansion(
            """
            @\(other)
            @ComposableStateMachine
            struct Screen: StateMachine {
                struct State { @NestedState var counter: Counter.State }
                enum Input { @Forward(Counter.Input.increment) case tapped }
                enum IOEffect { case log }
            }
            """)
        #expect(expansion.findings.isEmpty)
        #expect(expansion.text.ranges(of: "var body:").count == 1)
        #expect(expansion.text.ranges(of: "var nestedBody:").count == 1)
        #expect(expansion.text.contains("self.nestedBody"))
    }

    @Test("@EffectComposition runs effects like @ComposableEffectRunner, and its diagnostics name it")
    func effectComposition() {
        let expansion = Expansion(
            "@EffectComposition\nstruct Feature: StateMachine {\n    enum IOEffect { case log }\n}")
        #expect(expansion.contains("func runLog() -> Feature.IOResultStream"))
        #expect(!expansion.text.contains("var body"))
        #expect(
            Expansion("@EffectComposition\nenum Feature {}").findings.first?.message
                == "'@EffectComposition' can only be attached to a struct or an actor")
    }

    @Test(
        "an invalid child or forwarded case is diagnosed",
        arguments: [
            (
                "@NestedState var child: Other", "case a",
                "'@NestedState' requires the type of the child's state, such as 'Child.State': write 'var child: Child.State' "
                    + "or 'var child = Child.State()'"
            ),
            (
                "var a = 0", "@Forward(Child.Input.a) case a",
                "no property of 'State' is marked '@NestedState' and has the type 'Child.State'"
            ),
            (
                "@NestedState var child: Child.State", "@Forward(Child.Output.a) case a",
                "'@Forward' takes a case 'Child.Input.name' or 'Child.IOResult.name', or all cases, 'Child.Input.self', and "
                    + "not to 'Child.Output.a'"
            ),
            (
                "@NestedState var child: Child.State", "@Forward(Child.Input.self) case a",
                "'a' forwards all cases of 'Child.Input', so its single payload must have that type"
            ),
            (
                "@NestedState var child: Child.State", "@ForwardValue(Child.Input.a) case a(Int)",
                "'@ForwardValue' takes 'Child.Input.self', on a case of 'Input'"
            ),
            (
                "@NestedState var child: Child.State", "case a",
                "no action is forwarded to this child: mark a case of 'Input' with '@Forward(Child.Input.…)'"
            ),
            (
                "@NestedState var a: Child.State\n@NestedState var b: Child.State", "@Forward(Child.Input.a) case a",
                "'@Forward' cannot distinguish two children of the type 'Child': run the second with 'Scope' or "
                    + "'NestedStateMachine' in a custom 'body'"
            ),
        ])
    func diagnostics(state: String, input: String, message: String) {
        let expansion = Expansion(
            """
            @ComposableStateMachine
            struct Screen: StateMachine {
                struct State {
                    \(state)
                }
                enum Input {
                    \(input)
                }
            }
            """)
        #expect(expansion.findings.map(\.message).contains(message), "\(expansion.findings.map(\.message))")
    }

    @Test("forwarded cases keep their #if conditions, also those of the child")
    func conditions() {
        let expansion = Expansion(
            """
            @ComposableStateMachine
            struct Parent: StateMachine {
                struct State {
                    #if os(Linux)
                    @NestedState var child = Child.State()
                    #else
                    @NestedState var child: Child.State
                    #endif
                }
                enum Input {
                    @Forward(Child.Input.stop) case stop
                    #if DEBUG
                    @Forward(Child.Input.go) case go
                    #endif
                }
                enum IOResult {
                    #if DEBUG
                    @Forward(Child.IOResult.self) case child(Child.IOResult)
                    #endif
                }
            }
            """)
        #expect(expansion.findings.isEmpty, "\(expansion.findings.map(\.message))")
        #expect(
            expansion.contains(
                """
                case .input(.stop):
                return .input(.stop)
                #if (DEBUG)
                case .input(.go):
                return .input(.go)
                #endif
                """))
        #expect(
            expansion.contains(
                """
                #if (DEBUG)
                case .ioResult(let value0):
                return .ioResult(.child(value0))
                #endif
                """))
        #expect(
            expansion.contains("#if (os(Linux))\nStateMachines.NestedStateMachine<State, Action, Child>("))
        #expect(
            expansion.contains("#if !(os(Linux))\nStateMachines.NestedStateMachine<State, Action, Child>("))
    }
}

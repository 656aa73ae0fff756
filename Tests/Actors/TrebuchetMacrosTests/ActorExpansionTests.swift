import Testing

@Suite("Expansions of @Trebuchet")
struct ActorExpansionTests {
    @Test("a small public actor gets all generated members")
    func wholeActor() {
        let expansion = Expansion(
            """
            @Trebuchet
            public distributed actor TodoList {
                @StreamedState public var state: State = State()
                public distributed func addTodo(title: String) -> TodoItem { todo }
            }
            """)
        let expected = """
            public distributed actor TodoList {
                public var state: State = State() {
                    didSet {
                        _state_cell.didChange()
                    }
                }

                private let _state_cell: TrebuchetActors._StateCell<State> = .init()
                public distributed func addTodo(title: String) -> TodoItem { todo }

                public typealias ActorSystem = TrebuchetActors.TrebuchetActorSystem

                public nonisolated var unownedExecutor: UnownedSerialExecutor {
                    id._executor
                }

                public static var _dispatch: TrebuchetActors._DispatchTable<TodoList> {
                    .init(
                        methods: [
                            .sync("addTodo(title:)", arguments: 1) { actor, arguments, reply in
                                try reply.write(actor.addTodo(title: arguments.next(String.self)))
                            }
                        ],
                        streams: [
                            .state("observeState") { actor in
                                actor._state_cell
                            } value: { actor in
                                actor.state
                            } change: { actor, body in
                                body(&actor.state)
                            }
                        ]
                    )
                }

                public nonisolated var observeState: TrebuchetActors.StateObservation<TodoList, State> {
                    .init(self, "observeState")
                }

                public enum StreamingMethod: String, CaseIterable, Sendable {
                    case observeState
                }
            }

            extension TodoList: TrebuchetActors.TrebuchetActor, TrebuchetActors.StreamingActor {
            }
            """
        #expect(expansion.lines == Expansion.lines(of: expected))
        #expect(expansion.findings.isEmpty)
    }

    @Test(
        "generated code that uses a deprecated member is deprecated, and so is the observation of a deprecated stream")
    func deprecated() {
        let expansion = Expansion(
            """
            @Trebuchet distributed actor List {
                @available(*, deprecated, message: "use 'items'") @StreamedState var state = 1
                @StreamedEvents var changes: Int
                distributed func add() {}
            }
            """)
        #expect(expansion.findings.isEmpty)
        #expect(
            expansion.contains(
                "@available(*, deprecated)\nstatic var _dispatch: TrebuchetActors._DispatchTable<List> {"))
        #expect(
            expansion.contains(
                """
                @available(*, deprecated, message: "use 'items'")
                nonisolated var observeState: TrebuchetActors.StateObservation<List, Int> {
                """))
        #expect(!expansion.contains("@available(*, deprecated)\nnonisolated var observeChanges"))
        for member in ["@available(*, deprecated) distributed func a() {}", "distributed func a() {}"] {
            let expansion = Expansion("@Trebuchet distributed actor A { \(member) }")
            let start = "@available(*, deprecated)\nstatic var _dispatch: TrebuchetActors._DispatchTable<A> {"
            #expect(expansion.contains(start) == member.hasPrefix("@"), "\(expansion.text)")
        }
    }

    @Test("an empty actor gets an empty table and no streams")
    func emptyActor() {
        let expansion = Expansion("@Trebuchet distributed actor Empty {}")
        #expect(expansion.contains(".init(\nmethods: [],\nstreams: []\n)"))
        #expect(expansion.contains("extension Empty: TrebuchetActors.TrebuchetActor {\n}"))
        #expect(!expansion.text.contains("StreamingMethod"))
    }

    @Test(
        "the dispatch table has the lifecycle methods with their effects",
        arguments: [
            ("func activate() {}", "streams: [], activate: { actor in\nactor.activate()\n}"),
            ("func activate() async throws {}", "streams: [], activate: { actor in\ntry await actor.activate()\n}"),
            ("func deactivate() throws {}", "streams: [], deactivate: { actor in\ntry actor.deactivate()\n}"),
            ("func alarm(_ alarm: Alarm) {}", "streams: [], alarm: { actor, alarm in\nactor.alarm(alarm)\n}"),
            (
                "func alarm(_ due: Trebuchet.Alarm) async {}",
                "streams: [], alarm: { actor, alarm in\nawait actor.alarm(alarm)\n}"
            ),
        ])
    func lifecycle(method: String, argument: String) {
        #expect(Expansion("@Trebuchet distributed actor A { \(method) }").contains(argument))
    }

    @Test(
        "other methods of these names are not called by the server",
        arguments: [
            "func activate(at time: Int) {}", "static func activate() {}", "func activate<T>() -> T? { nil }",
            "func alarm() {}", "func alarm(alarm: Alarm) {}", "func alarm(_ alarm: Alarm, _ count: Int) {}",
            "func alarm(_ name: String) {}",
        ])
    func otherMethods(method: String) {
        #expect(!Expansion("@Trebuchet distributed actor A { \(method) }").contains("{ actor"))
    }

    @Test(
        "members are as visible as the actor",
        arguments: [
            ("public ", "public "), ("package ", "package "), ("internal ", ""), ("", ""), ("fileprivate ", ""),
            ("private ", ""),
        ])
    func access(actor: String, member: String) {
        let expansion = Expansion("@Trebuchet \(actor)distributed actor A { @StreamedState var a = 1 }")
        #expect(expansion.contains("\(member)typealias ActorSystem = TrebuchetActors.TrebuchetActorSystem"))
        #expect(expansion.contains("\(member)nonisolated var unownedExecutor: UnownedSerialExecutor {"))
        #expect(expansion.contains("\(member)static var _dispatch: TrebuchetActors._DispatchTable<A> {"))
        #expect(expansion.contains("\(member)enum StreamingMethod: String, CaseIterable, Sendable {"))
    }

    @Test("members are public in a public extension")
    func publicExtension() {
        let expansion = Expansion("public extension Space { @Trebuchet distributed actor A {} }")
        #expect(expansion.contains("public typealias ActorSystem = TrebuchetActors.TrebuchetActorSystem"))
    }

    @Test(
        "observations are as visible as the property, within the actor",
        arguments: [
            ("public ", "public ", "public "), ("public ", "package ", "package "), ("public ", "", ""),
            ("public ", "private(set) public ", "public "), ("package ", "public ", "package "),
            ("", "public ", ""), ("public ", "private ", "private "), ("", "fileprivate ", "fileprivate "),
        ])
    func observationAccess(actor: String, property: String, observation: String) {
        let expansion = Expansion("@Trebuchet \(actor)distributed actor A { @StreamedState \(property)var a = 1 }")
        #expect(
            expansion.contains("\(observation)nonisolated var observeA: TrebuchetActors.StateObservation<A, Int> {"))
    }

    @Test("an existing typealias or executor is not generated again")
    func ownMembers() {
        let expansion = Expansion(
            """
            @Trebuchet distributed actor A {
                typealias ActorSystem = TrebuchetActorSystem
                nonisolated var unownedExecutor: UnownedSerialExecutor { mine }
            }
            """)
        #expect(!expansion.text.contains("TrebuchetActors.TrebuchetActorSystem"))
        #expect(!expansion.text.contains("id._executor"))
        #expect(expansion.findings.isEmpty)
    }

    @Test("a concurrent actor has no executor, and its methods all run in tasks")
    func concurrentActor() {
        let expansion = Expansion(
            """
            @Trebuchet(executor: .concurrent) distributed actor A {
                distributed func crunch(_ n: Int) -> Int { n }
                distributed func forget() {}
            }
            """)
        #expect(!expansion.text.contains("unownedExecutor"))
        #expect(
            expansion.contains(
                """
                .async("crunch(_:)", arguments: 1) { arguments in
                    let argument0 = try arguments.next(Int.self)
                    return { actor in
                        try .init(actor.crunch(argument0))
                    }
                },
                .async("forget()", arguments: 0) { _ in
                    return { actor in
                        actor.forget()
                        return .void
                    }
                }
                """))
    }

    @Test("each stream has an observation, in the order of the properties")
    func severalStreams() {
        let expansion = Expansion(
            """
            @Trebuchet distributed actor GameServer {
                @StreamedState var gameState: GameState = GameState()
                @Trebuchet.StreamedState var metrics = Metrics()
            }
            """)
        #expect(expansion.contains("case observeGameState\ncase observeMetrics"))
        #expect(
            expansion.contains(
                "nonisolated var observeMetrics: TrebuchetActors.StateObservation<GameServer, Metrics> {"))
    }

    @Test("members inside #if keep the condition")
    func conditionalMembers() {
        let expansion = Expansion(
            """
            @Trebuchet distributed actor A {
                distributed func always() {}
                #if DEBUG
                distributed func f() {}
                #elseif os(Linux)
                distributed func f() {}
                #else
                @StreamedState var a = 1
                #endif
            }
            """)
        #expect(
            expansion.contains(
                """
                #if (DEBUG)
                methods.append(
                    .sync("f()", arguments: 0) { actor, _, _ in
                        actor.f()
                    }
                )
                #endif
                #if !(DEBUG) && (os(Linux))
                """))
        #expect(
            expansion.contains(
                """
                #if !(DEBUG) && !(os(Linux))
                nonisolated var observeA: TrebuchetActors.StateObservation<A, Int> {
                    .init(self, "observeA")
                }
                #endif
                """))
        #expect(expansion.findings.isEmpty)
    }
}

import Testing

@Suite("Dispatch entries")
struct DispatchEntryTests {
    @Test("a dispatch entry decodes, calls and encodes", arguments: Self.members)
    func entry(member: String, entry: String) {
        let expansion = Expansion("@Trebuchet distributed actor A { \(member) }")
        #expect(expansion.contains(entry), "\(expansion.text)")
        #expect(expansion.findings.isEmpty)
    }

    static let members: [(String, String)] = [
        (
            "distributed func f() {}",
            """
            .sync("f()", arguments: 0) { actor, _, _ in
                actor.f()
            }
            """
        ),
        (
            "distributed func f() throws -> Void {}",
            """
            .sync("f()", arguments: 0) { actor, _, _ in
                try actor.f()
            }
            """
        ),
        (
            "distributed func add(_ n: Int, to other: String = \"x\") -> Int { n }",
            """
            .sync("add(_:to:)", arguments: 2) { actor, arguments, reply in
                try reply.write(actor.add(arguments.next(Int.self), to: arguments.next(String.self)))
            }
            """
        ),
        (
            "distributed func pay(_ n: Int) throws(BankError) {}",
            """
            .sync("pay(_:)", arguments: 1, throwing: BankError.self) { actor, arguments, _ in
                try actor.pay(arguments.next(Int.self))
            }
            """
        ),
        (
            "@Idempotent distributed func pay(_ n: Int) throws(BankError) {}",
            """
            .sync("pay(_:)", arguments: 1, throwing: BankError.self, idempotent: true) { actor, arguments, _ in
                try actor.pay(arguments.next(Int.self))
            }
            """
        ),
        (
            "@Trebuchet.Idempotent distributed func later() async {}",
            """
            .async("later()", arguments: 0, idempotent: true) { _ in
                return { actor in
                    await actor.later()
                    return .void
                }
            }
            """
        ),
        (
            "distributed func f() throws(any Error) {}",
            """
            .sync("f()", arguments: 0) { actor, _, _ in
                try actor.f()
            }
            """
        ),
        (
            "distributed func f() throws(Never) {}",
            """
            .sync("f()", arguments: 0) { actor, _, _ in
                actor.f()
            }
            """
        ),
        (
            "distributed func later(_ n: Int) async throws(BankError) -> Int { n }",
            """
            .async("later(_:)", arguments: 1, throwing: BankError.self) { arguments in
                let argument0 = try arguments.next(Int.self)
                return { actor in
                    try await .init(actor.later(argument0))
                }
            }
            """
        ),
        (
            "distributed func later() async {}",
            """
            .async("later()", arguments: 0) { _ in
                return { actor in
                    await actor.later()
                    return .void
                }
            }
            """
        ),
        (
            "distributed func `default`(`in` a: Int, `inout` b: String!) {}",
            """
            .sync("default(in:inout:)", arguments: 2) { actor, arguments, _ in
                try actor.`default`(in: arguments.next(Int.self), `inout`: arguments.next(String?.self))
            }
            """
        ),
        (
            "distributed var count: Int { 1 }",
            """
            .sync("count()", arguments: 0) { actor, _, reply in
                try reply.write(actor.count)
            }
            """
        ),
        (
            "distributed var count: Int { get async throws(BankError) { 1 } }",
            """
            .async("count()", arguments: 0, throwing: BankError.self) { _ in
                return { actor in
                    try await .init(actor.count)
                }
            }
            """
        ),
        (
            "distributed func echo<T: Codable & Sendable>(_ v: T) -> T { v }",
            """
            .sync("echo(_:)", arguments: 1, generics: 1) { actor, arguments, reply in
                func call<T: Codable & Sendable>(_: T.Type, _ actor: isolated A, _ arguments: inout TrebuchetActors._CallArguments, _ reply: inout TrebuchetActors._CallReply) throws {
                    try reply.write(actor.echo(arguments.next(T.self)))
                }
                guard let type0 = try arguments.generic(0) as? any (Codable & Sendable).Type else {
                    throw arguments.unsatisfied(0)
                }
                try call(type0, actor, &arguments, &reply)
            }
            """
        ),
        (
            "distributed func pair<T, U: Scoring>(_ v: T, u: [U]) async -> U where T: Codable, T: Sendable { u[0] }",
            """
            .async("pair(_:u:)", arguments: 2, generics: 2) { arguments in
                func prepare<T: Codable & Sendable, U: Scoring>(_: T.Type, _: U.Type, _ arguments: inout TrebuchetActors._CallArguments) throws -> @Sendable (isolated A) async throws -> TrebuchetActors._CallResult {
                    let argument0 = try arguments.next(T.self)
                    let argument1 = try arguments.next([U].self)
                    return { actor in
                        try await .init(actor.pair(argument0, u: argument1))
                    }
                }
                guard let type0 = try arguments.generic(0) as? any (Codable & Sendable).Type else {
                    throw arguments.unsatisfied(0)
                }
                guard let type1 = try arguments.generic(1) as? any Scoring.Type else {
                    throw arguments.unsatisfied(1)
                }
                return try prepare(type0, type1, &arguments)
            }
            """
        ),
        (
            "distributed func f<T: P>(_ a: T, _ b: [some Q & R]) {}",
            """
            func call<T: P, Opaque1: Q & R>(_: T.Type, _: Opaque1.Type, _ actor: isolated A, _ arguments: inout TrebuchetActors._CallArguments, _ reply: inout TrebuchetActors._CallReply) throws {
                try actor.f(arguments.next(T.self), arguments.next([Opaque1].self))
            }
            """
        ),
    ]

    @Test(
        "a method that is not distributed has no dispatch entry",
        arguments: [
            "func f() {}", "nonisolated func f() {}", "static func f() {}", "var f: Int { 1 }",
            "nonisolated var f: Int { 1 }", "@inlinable func f(a: consuming Int) {}", "init() {}", "struct F {}",
        ])
    func notDistributed(member: String) {
        let expansion = Expansion("@Trebuchet distributed actor A { \(member) }")
        #expect(expansion.contains("methods: [],"))
        #expect(expansion.findings.isEmpty)
    }
}

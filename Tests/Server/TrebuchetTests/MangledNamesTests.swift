import Foundation
import Synchronization
import Testing
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// Contexts of every kind around an actor, and names that share words with it.
enum MangledTests {
    struct Trebuchet {
        @Trebuchet
        distributed actor MangledTests_todoList {
            distributed func add() {}
            distributed func add(_ number: Int) {}
            distributed func add(_ a: Int, _ b: Int) -> Int { a + b }
            distributed func add(_ a: Int, _ b: [String: [Int]], _ c: String?) -> Int { a }
            distributed func add(to number: Int) -> Int { number }
            distributed func add(to number: Int, and other: Int) async throws -> Data { Data() }
            distributed func addTodo(todo: String) throws {}
            distributed func todoListOfLists(_ a: Int, todoList: Int, Todo: Int) -> Int { 0 }
            distributed func x(x: Int, y: Int, x z: Int, _ w: Int) -> [Int] { [] }
            distributed func MangledTests(_ Trebuchet: Int) -> Int { 0 }
            distributed func now() -> Date { Date(timeIntervalSince1970: 0) }
            distributed func echo<Value: Codable & Sendable>(_ value: Value) -> Value { value }
            distributed func _under_score2(a_b: Int) throws(Closed) -> Int { 0 }
            distributed func snake_case_name_snake(of snake: Int) async {}
            distributed var count: Int { 3 }
        }
    }
}

private func callAll(_ actor: MangledTests.Trebuchet.MangledTests_todoList) async throws {
    try await actor.add()
    try await actor.add(1)
    _ = try await actor.add(1, 2)
    _ = try await actor.add(1, [:], nil)
    _ = try await actor.add(to: 1)
    _ = try await actor.add(to: 1, and: 2)
    try await actor.addTodo(todo: "")
    _ = try await actor.todoListOfLists(1, todoList: 2, Todo: 3)
    _ = try await actor.x(x: 1, y: 2, x: 3, 4)
    _ = try await actor.MangledTests(1)
    _ = try await actor.now()
    _ = try await actor.echo(1)
    _ = try await actor._under_score2(a_b: 1)
    try await actor.snake_case_name_snake(of: 1)
    _ = try await actor.count
}

@Suite(.timeLimit(.minutes(5))) struct MangledNamesTests {
    /// Runs `body` with a server, and returns the mangled names that the compiler uses for the calls of `body`.
    private func calls<A: TrebuchetActor>(
        of type: A.Type, _ make: @escaping @Sendable (TrebuchetActorSystem) -> A,
        _ body: @escaping @Sendable (A) async throws -> Void
    ) async throws -> [(mangled: String, name: String)] {
        try await withTestServer(link: .local) { server in
            await server.expose(make(server.actorSystem), as: "actor")
        } body: { client, _ in
            try await body(client.resolve(type, id: "actor"))
            return client.core.methods.known.withLock { $0.map { ($0, $1.name) } }
        }
    }

    private typealias Actor = MangledTests.Trebuchet.MangledTests_todoList

    /// The names of the calls of `callAll`.
    private func allCalls() async throws -> [(mangled: String, name: String)] {
        try await calls(of: Actor.self) {
            Actor(actorSystem: $0)
        } _: {
            try await callAll($0)
        }
    }

    private func count(_ name: String) -> Int { name.count { $0 == ":" } }

    @Test("methods are found by the names that the compiler gives them")
    func compilersNames() async throws {
        let calls = try await allCalls()
        #expect(calls.count == 15)
        for (mangled, name) in calls {
            #expect(
                ActorTypes.entry(of: Actor.self).methodName(mangled: mangled, arguments: count(name)) == name,
                "\(mangled)")
            #expect(ActorTypes.entry(of: Calculator.self).methodName(mangled: mangled, arguments: count(name)) == nil)
        }
    }

    @Test("a name with another number of arguments than its method names no other method")
    func otherCounts() async throws {
        let calls = try await allCalls()
        for (mangled, name) in calls {
            for other in 0...5 where other != count(name) {
                let found = ActorTypes.entry(of: Actor.self).methodName(mangled: mangled, arguments: other)
                #expect(found == nil, "\(mangled) with \(other)")
            }
        }
        // A method that the actor does not have.
        let start = try #require(calls.first { $0.name == "add()" }?.mangled.dropLast("yyYaKFTE".count))
        for types in ["2zzyS2i_tYaKFTE", "2zzySiYaKFTE", "Si_SitYaKFTE"] {
            #expect(
                ActorTypes.entry(of: Actor.self).methodName(mangled: start + types, arguments: 0) == nil, "\(types)")
        }
        // A few bytes stand for many types. Above a maximum number they are not understood, and take no memory.
        for types in ["S999iS999iYaKFTE", "A999a999BYaKFTE"] {
            #expect(ActorTypes.entry(of: Actor.self).methodName(mangled: start + types, arguments: 0) == "add()")
        }
    }

    @Test("methods of a generic actor are found")
    func generic() async throws {
        let calls = try await calls(of: Box<Int>.self) {
            Box<Int>(actorSystem: $0)
        } _: { box in
            _ = try await box.put(1)
        }
        #expect(calls.count == 1)
        for (mangled, name) in calls {
            #expect(ActorTypes.entry(of: Box<Int>.self).methodName(mangled: mangled, arguments: count(name)) == name)
        }
    }

    @Test(
        "other texts name no method",
        arguments: [
            "", "$s", "FTE", "$sFTE", "add()", "$s14TrebuchetTests10CalculatorC4same",
            "$s14TrebuchetTests10CalculatorC",
            "$s14TrebuchetTests10CalculatorC4sameyS2iYaKFTX", "$s14TrebuchetTests10CalculatorC7nothingySiYaKFTE",
            "$s14TrebuchetTests10CalculatorC5otheryS2iYaKFTE", "$s14TrebuchetTests4BankC4sameyS2iYaKFTE",
            "$s14TrebuchetTests10CalculatorC4sameyyYaKFTE",
        ])
    func nothing(text: String) {
        for count in 0...2 {
            #expect(ActorTypes.entry(of: Calculator.self).methodName(mangled: text, arguments: count) == nil)
        }
    }
}

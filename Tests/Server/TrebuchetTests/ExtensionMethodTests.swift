import Testing
import Trebuchet
import TrebuchetTesting

extension Calculator {
    /// Declared in an extension, which the macro does not see.
    distributed func triple(_ number: Int) -> Int { number * 3 }
}

@Suite(.timeLimit(.minutes(5))) struct ExtensionMethodTests {
    @Test("a distributed method in an extension can be called", arguments: TestLink.allCases)
    func extensionMethod(link: TestLink) async throws {
        try await withTestServer(link: link) { server in
            await server.expose(Calculator(actorSystem: server.actorSystem), as: "calculator")
        } body: { client, _ in
            let calculator = try client.resolve(Calculator.self, id: "calculator")
            #expect(try await calculator.triple(14) == 42)
            #expect(try await calculator.same(1) == 1)
        }
    }

    @Test("calls run in place again after a call of an extension method", arguments: TestLink.allCases)
    func inPlace(link: TestLink) async throws {
        // One reactor, so that the connection and the actor share it.
        try await withTestServer(link: link, reactors: 1) { server in
            await server.expose(Calculator(actorSystem: server.actorSystem), as: "calculator")
        } body: { client, _ in
            let calculator = try client.resolve(Calculator.self, id: "calculator")
            #expect(try await calculator.runsInTask() == false)
            #expect(try await calculator.triple(14) == 42)
            #expect(try await calculator.runsInTask() == false)
        }
    }

    /// `Plain.note(_:)`, `Plain.noted()` and `Calculator.triple(_:)`.
    static let foreign = [
        ("calculator", "$s14TrebuchetTests5PlainC4noteyySiYaKFTE", ["1"]),
        ("calculator", "$s14TrebuchetTests5PlainC5notedSaySiGyYaKFTE", []),
        ("plain", "$s14TrebuchetTests10CalculatorC6tripleyS2iYaKFTE", ["1"]),
        ("plain", "$s14TrebuchetTests10CalculatorC4sameyS2iYaKFTE", ["1"]),
    ]

    @Test("the mangled name of another type's method is rejected", arguments: foreign)
    func foreignMethod(actor: String, target: String, arguments: [String]) async throws {
        try await withTestServer { server in
            await server.expose(Calculator(actorSystem: server.actorSystem), as: "calculator")
            await server.expose(Plain(actorSystem: server.actorSystem), as: "plain")
        } body: { client, _ in
            let error = await #expect(throws: TrebuchetError.self) {
                _ = try await client.call(actor: actor, target: target, arguments: arguments.map { Array($0.utf8) })
            }
            #expect(error?.code == .methodNotFound)
        }
    }
}

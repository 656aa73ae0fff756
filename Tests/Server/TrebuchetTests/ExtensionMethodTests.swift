import Testing
import Trebuchet
import TrebuchetTesting

extension Calculator {
    /// Declared in an extension, which the macro does not see.
    distributed func triple(_ number: Int) -> Int { number * 3 }
}

@Suite(.timeLimit(.minutes(5))) struct ExtensionMethodTests {
    @Test("a distributed method in an extension is rejected where it is called", arguments: TestLink.allCases)
    func extensionMethod(link: TestLink) async throws {
        try await withTestServer(link: link) { server in
            await server.expose(Calculator(actorSystem: server.actorSystem), as: "calculator")
        } body: { client, server in
            let calculator = try client.resolve(Calculator.self, id: "calculator")
            let error = await #expect(throws: TrebuchetError.self) { try await calculator.triple(14) }
            #expect(error?.code == .methodNotFound)
            #expect(error?.message.contains("'Calculator.triple(_:)'") == true)
            #expect(error?.message.contains("move the method from the extension into the actor") == true)
            #expect(try await calculator.same(1) == 1)
            // It is a method like any other where the actor lives.
            #expect(try await server.actorSystem.resolve(Calculator.self, id: "calculator").triple(14) == 42)
        }
    }

    @Test(
        "version 3 has no mangled names",
        arguments: [
            "$s14TrebuchetTests10CalculatorC6tripleyS2iYaKFTE", "$s14TrebuchetTests10CalculatorC4sameyS2iYaKFTE",
        ])
    func mangledName(target: String) async throws {
        try await withTestServer { server in
            await server.expose(Calculator(actorSystem: server.actorSystem), as: "calculator")
        } body: { client, _ in
            let error = await #expect(throws: TrebuchetError.self) {
                _ = try await client.call(actor: "calculator", target: target, arguments: [Array("1".utf8)])
            }
            #expect(error?.code == .methodNotFound)
        }
    }
}

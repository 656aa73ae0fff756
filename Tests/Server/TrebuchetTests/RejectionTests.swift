import Testing
import Trebuchet
import TrebuchetTesting

/// Invalid calls: each gets a clear error, and the connection continues to work.
@Suite(.timeLimit(.minutes(5))) struct RejectionTests {
    struct Refused: Sendable, CustomTestStringConvertible {
        let actor: String
        let target: String
        let arguments: [String]
        let code: TrebuchetError.Code
        let text: String

        var testDescription: String { "\(actor).\(target) with \(arguments)" }
    }

    static let refused = [
        Refused(
            actor: "nobody", target: "same(_:)", arguments: ["1"], code: .actorNotFound,
            text: "no actor 'nobody' is exposed"),
        Refused(
            actor: "calculator", target: "divide(_:)", arguments: ["1"], code: .methodNotFound,
            text: "actor 'calculator' has no method 'divide(_:)'; it has add(_:to:), answer"),
        Refused(
            actor: "calculator", target: "same", arguments: ["1"], code: .methodNotFound, text: "no method 'same'"),
        Refused(
            actor: "calculator", target: "same(_:)", arguments: [], code: .invalidArguments,
            text: "same(_:) takes 1 argument, got 0"),
        Refused(
            actor: "calculator", target: "same(_:)", arguments: ["1", "2"], code: .invalidArguments,
            text: "same(_:) takes 1 argument, got 2"),
        Refused(
            actor: "calculator", target: "same(_:)", arguments: [#""one""#], code: .invalidArguments,
            text: "argument 1: "),
        Refused(
            actor: "calculator", target: "same(_:)", arguments: ["9223372036854775808"], code: .invalidArguments,
            text: "argument 1: "),
        Refused(
            actor: "calculator", target: "same(_:)", arguments: ["5.5"], code: .invalidArguments,
            text: "argument 1: Int does not decode from 5.5: Int accepts integers only"),
        Refused(
            actor: "calculator", target: "same(_:)", arguments: ["9223372036854775808"], code: .invalidArguments,
            text: "the number does not fit into Int"),
        Refused(
            actor: "calculator", target: "join(_:b:text:_:list:)", arguments: ["1", "1.5", "\"\"", "true", "[1,2.5]"],
            code: .invalidArguments, text: " does not fit into "),
        Refused(
            actor: "calculator", target: "joinLater(_:text:)", arguments: ["1", "2"], code: .invalidArguments,
            text: "argument 2: "),
        Refused(
            actor: "calculator", target: "echo(_:)", arguments: ["1"], code: .invalidArguments,
            text: "echo(_:) takes 1 generic substitution, got 0"),
    ]

    @Test("an invalid call reports its reason, and later calls work", arguments: refused, TestLink.allCases)
    func refusals(call: Refused, link: TestLink) async throws {
        try await withTestServer(link: link) { server in
            await server.expose(Calculator(actorSystem: server.actorSystem), as: "calculator")
        } body: { client, server in
            let other = TrebuchetClient(transport: .local(server))
            try await other.connect()
            let error = await #expect(throws: TrebuchetError.self) {
                _ = try await client.call(
                    actor: call.actor, target: call.target, arguments: call.arguments.map { Array($0.utf8) })
            }
            #expect(error?.code == call.code)
            #expect(error?.message.contains(call.text) == true, "\(error?.message ?? "")")
            for client in [client, other] {
                #expect(try await client.resolve(Calculator.self, id: "calculator").same(1) == 1)
            }
            await other.close()
        }
    }

    @Test("an unsupported filter and an unknown stream are rejected by name")
    func streams() async throws {
        try await withTestServer { server in
            await server.expose(TodoList(actorSystem: server.actorSystem), as: "todos")
        } body: { client, _ in
            var iterator = client.observe(actor: "todos", stream: "observeNothing").makeAsyncIterator()
            let error = await #expect(throws: TrebuchetError.self) { _ = try await iterator.next() }
            #expect(error?.code == .methodNotFound)
            #expect(error?.message.contains("observeState") == true)
        }
    }
}

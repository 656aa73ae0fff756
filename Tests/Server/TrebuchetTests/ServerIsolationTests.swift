import Testing
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetActors

private struct RegisteredValue: Codable, Sendable, Equatable { var number = 1 }

/// Servers of one process.
@Suite struct ServerIsolationTests {
    @Test("registered types and hidden actors of a server do not change another server of the process")
    func settings() async throws {
        let one = TrebuchetServer(transport: .webSocket(port: 0), log: nil)
        let other = TrebuchetServer(transport: .webSocket(port: 0), log: nil)
        one.register(genericTypes: RegisteredValue.self)
        await one.expose(Calculator(actorSystem: one.actorSystem), as: "calculator", inspectable: false)
        await other.expose(Calculator(actorSystem: other.actorSystem), as: "calculator")
        let type = ActorTypes.entry(of: Calculator.self)
        #expect(!one.view.isInspectable(type) && other.view.isInspectable(type))
        for server in [one, other] {
            let client = TrebuchetClient(transport: .local(server))
            try await client.connect()
            let calculator = try client.resolve(Calculator.self, id: "calculator")
            if server === one {
                #expect(try await calculator.echo(RegisteredValue()) == RegisteredValue())
            } else {
                let error = await #expect(throws: TrebuchetError.self) { try await calculator.echo(RegisteredValue()) }
                #expect(error?.code == .invalidArguments)
            }
            await client.close()
            await server.shutdown(drain: .zero)
        }
    }
}

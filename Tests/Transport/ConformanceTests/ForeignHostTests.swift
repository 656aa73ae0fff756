import Testing
import Trebuchet

/// A client in Python whose actor a server in this process calls.
@Suite(.timeLimit(.minutes(5))) struct ForeignHostTests {
    @Test("a Python client hosts an actor: calls, errors, cancellation, and a reconnect")
    func hosting() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        await server.expose(ForeignHost(actorSystem: server.actorSystem), as: "host")
        let address = try await server.start()
        try await PythonPeer("hosting", ["ws://\(address.host):\(address.port)"]).expectOK()
        await server.shutdown(drain: .zero)
    }
}

@Resolvable
protocol ForeignMember: DistributedActor where ActorSystem == TrebuchetActorSystem {
    distributed func receive(_ text: String) -> String
}

/// Knows its member only through a protocol.
@Trebuchet
distributed actor ForeignHost {
    private var member: $ForeignMember?

    distributed func enter(_ member: $ForeignMember) { self.member = member }

    /// The member's response, or the code and the text of the error.
    distributed func tell(_ text: String) async -> [String] {
        do {
            return [try await member?.receive(text) ?? "nobody"]
        } catch let error as TrebuchetError {
            return ["\(error.code)", error.message]
        } catch {
            return ["\(type(of: error))"]
        }
    }
}

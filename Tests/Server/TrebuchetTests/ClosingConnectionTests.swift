import TestSupport
import Testing
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// A connection that the server is draining, beside its replacement.
@Suite(.timeLimit(.minutes(5))) struct ClosingConnectionTests {
    @Test("a client is notified when its server is cut off, also in the same process", arguments: TestLink.allCases)
    func cut(link: TestLink) async throws {
        let journal = Journal()
        var options = TrebuchetClient.Options()
        options.reconnect = .never
        try await withTestServer(link: link, options: options) { server in
            await server.expose(Waiter(journal: journal, actorSystem: server.actorSystem), as: "waiter")
        } body: { client, server in
            let waiter = try client.resolve(Waiter.self, id: "waiter")
            let call = Task { try await waiter.hold("x") }
            await journal.wait(for: "x began")
            await server.cut()
            let error = await #expect(throws: TrebuchetError.self) { try await call.value }
            #expect(error?.code == .unknownOutcome)
        }
    }

    @Test(
        "in-flight calls of a draining connection are answered over it, and the last one closes it",
        arguments: [false, true])
    func calls(hosts: Bool) async throws {
        let journal = Journal()
        try await withTestServer { server in
            await server.expose(Waiter(journal: journal, actorSystem: server.actorSystem), as: "waiter")
            await server.expose(InProcessReferenceHolder(actorSystem: server.actorSystem), as: "host")
        } body: { client, server in
            let clientActor = InProcessClientActor("v", actorSystem: client.actorSystem)
            let host = try client.resolve(InProcessReferenceHolder.self, id: "host")
            if hosts { _ = try await host.enter(clientActor) }
            let waiter = try client.resolve(Waiter.self, id: "waiter")
            var calls: [(name: String, call: Task<String, any Error>)] = []
            for name in ["x", "y"] {
                calls.append((name, Task { try await waiter.hold(name) }))
                await journal.wait(for: "\(name) began")
            }
            for shard in server.shards {
                await shard.reactor.perform {
                    for connection in shard.connections.values { connection.drain(reconnectAfterMilliseconds: 0) }
                }
            }
            #expect(await eventually { await server.connectionCount == 2 })
            // The server attributes the new connection to the same client.
            if hosts { #expect(try await host.tell("a") == [1]) }
            for (name, call) in calls {
                journal.record("\(name) go")
                #expect(try await call.value == "went on")
            }
            #expect(await eventually { await server.connectionCount == 1 })
            withExtendedLifetime(clientActor) {}
        }
    }
}

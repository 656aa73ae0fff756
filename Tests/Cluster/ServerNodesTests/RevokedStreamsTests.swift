import NodeSupport
import Synchronization
import TestSupport
import Testing
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet

/// Connections whose authorization is revoked while their requests to other nodes are in flight.
@Suite(.timeLimit(.minutes(5))) struct RevokedStreamsTests {
    /// Uses three nodes: the client is at the first, the second uses the coordination store through `engineRoute`.
    private func withRevoked(
        _ body: (_ client: TextClient, _ nodes: [Node], _ engineRoute: FaultyEngine, _ revoke: () -> Void) async throws
            -> Void
    ) async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        let callers = Mutex<[CallerConnection]>([])
        var access = AccessPolicy(authenticate: { _ in Principal(id: "ada") })
        access.onConnect = { caller in callers.withLock { $0.append(caller) } }
        let nodes = [
            try Node("a", engine, access: access), try Node("b", engine, through: engineRoute, access: access),
            try Node("c", engine, access: access),
        ]
        try await Node.with(nodes) {
            let client = try await nodes[0].textClient()
            let caller = try #require(callers.withLock { $0.last })
            try await body(client, nodes, engineRoute) { caller.revokeAccess("the session has ended") }
            client.abort()
        }
    }

    @Test(
        "a stream requested before the revocation and started after it delivers nothing",
        arguments: ["", #","filter":{"distinct":true}"#])
    func revokedAtStart(filter: String) async throws {
        try await withRevoked { client, nodes, engineRoute, revoke in
            let name = nodes[1].names("boards")[0]
            client.call(9, name, "step()", "[]")
            #expect(await client.answer(9) != nil)
            let (before, server) = (engineRoute.messageCount, nodes[1].server)
            engineRoute.set { $0.holdsMessages = true }
            client.call(1, name, "observeSteps", "[]", more: filter)
            // The owner has started the stream, or has authorized it.
            #expect(
                await eventually {
                    let streams = await server.counters().streams
                    return filter.isEmpty ? engineRoute.pausedCount > 0 : streams == 1
                })
            revoke()
            #expect(await eventually { client.messages.contains { $0.error == "unauthenticated" } })
            engineRoute.set { $0.holdsMessages = false }
            #expect(await eventually { engineRoute.messageCount > before })
            client.call(2, name, "step()", "[]")
            #expect(await client.answer(2)?.contains("unauthenticated") == true)
            #expect(await client.answer(1)?.contains("unauthenticated") == true)
            #expect(await eventually { await server.counters().streams == 0 })
            #expect(client.starts.isEmpty && client.versions.isEmpty)
        }
    }

    @Test("calls that wait for the next owner of their actor are not executed after the revocation")
    func waiting() async throws {
        try await withRevoked { client, nodes, _, revoke in
            let names = nodes[1].names(16)
            await nodes[1].server.cut()
            for name in names { client.call(name, name, "add(_:)", [1]) }
            #expect(await eventually { await nodes[0].server.counters().callsUnderWay == 16 })
            revoke()
            #expect(await eventually { client.messages.contains { $0.error == "unauthenticated" } })
            try await nodes[1].kill()
            let other = try await nodes[2].textClient()
            for name in names {
                #expect(await eventually { client.answers(name).count == 1 })
                #expect(client.answers(name).first?.error == "unauthenticated")
                other.call(name, name, "add(_:)", [0])
                #expect(await eventually { other.answers(name).count == 1 })
                #expect(other.answers(name).first?.text.contains(#""result":0"#) == true)
            }
            other.abort()
        }
    }
}

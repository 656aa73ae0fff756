import NodeSupport
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetCluster

/// Calls that are routed again, as their actor cannot be loaded at its supposed owner.
@Suite(.timeLimit(.minutes(5))) struct ContinuedCallsTests {
    /// Runs `body` with a client of a node that has taken over an actor of another node, and cannot load it.
    private func withMoving(
        rule: @escaping NodeRule, _ body: (TextClient, Node, FaultyEngine) async throws -> Void
    ) async throws {
        let engine = MemoryEngine()
        let before = try Node("a", engine)
        try await before.start()
        await ownAll([before])
        #expect(try await before.client().resolve(Tally.self, id: "tallies/x").add(1) == 1)
        try await before.kill()
        let engineRoute = FaultyEngine(engine)
        let node = try Node("b", engine, through: engineRoute, rule: rule)
        try await Node.with([node]) {
            let client = try await node.textClient()
            engineRoute.set { $0.fencesAppends = true }
            try await body(client, node, engineRoute)
            client.abort()
        }
        await before.stop()
    }

    @Test("a call ends at its deadline, however often it is routed again, and is authorized once")
    func deadline() async throws {
        let asked = Mutex(0)
        let rule: NodeRule = { _, _, _ in
            asked.withLock { $0 += 1 }
            return true
        }
        try await withMoving(rule: rule) { client, _, engineRoute in
            client.call(1, "tallies/x", "add(_:)", "[1]", more: #","timeoutMilliseconds":1500"#)
            client.callOnce(2, "tallies/x", "addOnce(_:)", "[1]", more: #","timeoutMilliseconds":1500"#)
            for call in 1...2 { #expect(await client.answer(call)?.contains("timeout") == true, "\(client.texts)") }
            #expect(engineRoute.appendCount > 2)
            #expect(asked.withLock { $0 } == 2)
            engineRoute.set { $0.fencesAppends = false }
            client.call(3, "tallies/x", "add(_:)", "[1]")
            #expect(await client.answer(3)?.contains(#""result":2"#) == true)
        }
    }

    @Test("a call that is routed again is authorized again when the rules have changed meanwhile")
    func newRules() async throws {
        try await withMoving(rule: { _, _, _ in true }) { client, node, engineRoute in
            client.call(1, "tallies/x", "add(_:)", "[1]")
            #expect(await eventually { engineRoute.appendCount > 2 })
            await node.server.replaceAuthorization { _, _, _ in false }
            let answer = try #require(await client.answer(1))
            #expect(answer.contains("unauthenticated"))
        }
    }
}

import NodeSupport
import TestSupport
import Testing
import TrebuchetCluster

@testable import Trebuchet

/// In-flight calls when the lease of their actor ends and a write is not yet answered.
@Suite(.timeLimit(.minutes(5))) struct AbandonedCallTests {
    /// Runs `body` with a client at one of two nodes, which observes an actor of the second node and has called a method of it. The call
    /// is written, the node owns no slots any more, and the response of the coordination store is outstanding.
    private func with(
        _ place: Int, calling target: String, _ body: (String, TextClient, FaultyEngine) async throws -> Void
    ) async throws {
        // Time passes for the second node only: the first keeps its slots.
        let (still, clock) = (ManualEngineClock(), ManualEngineClock())
        let engine = MemoryEngine(clock: still)
        let engineRoute = FaultyEngine(engine)
        let nodes = [try Node("a", engine, clock: still), try Node("b", engine, through: engineRoute, clock: clock)]
        try await Node.with(nodes) {
            let name = nodes[1].names(1)[0]
            let client = try await nodes[place].textClient()
            client.observe("stream", name)
            #expect(await eventually { client.versions.count == 1 })
            engineRoute.set { $0.hangsAnswers = true }
            client.callOnce(1, name, target, "[1]")
            #expect(await eventually { engineRoute.unansweredCount == 1 })
            engineRoute.set { ($0.failsRenewals, $0.givesNoSlots) = (true, true) }
            clock.advance(by: Node.settings.leaseDuration)
            #expect(await eventually { nodes[1].member.slotCount == 0 })
            try await body(name, client, engineRoute)
            client.abort()
        }
    }

    @Test(
        "a call ends with unknownOutcome when its activation ends before the coordination store has responded",
        arguments: [0, 1])
    func unknown(place: Int) async throws {
        try await with(place, calling: "add(_:)") { name, client, engineRoute in
            let unknown = try #require(await client.answer(1))
            #expect(unknown.contains("unknownOutcome"))
            engineRoute.set { $0 = .init() }
            client.call(2, name, "add(_:)", "[0]")
            let reply1 = try #require(await client.answer(2))
            #expect(reply1.contains(#""result":1"#))
            #expect(client.shown(of: "stream", before: "2") > 1, "\(client.texts)")
        }
    }

    @Test(
        "an @Idempotent call is executed once and answered by the next owner, after the update that shows its effect",
        arguments: [0, 1])
    func idempotent(place: Int) async throws {
        try await with(place, calling: "addOnce(_:)") { name, client, engineRoute in
            // Late responses to the previous activation are discarded.
            engineRoute.set { $0 = .init() }
            let reply2 = try #require(await client.answer(1))
            #expect(reply2.contains(#""result":1"#), "\(client.texts)")
            #expect(client.shown(of: "stream", before: "1") > 1, "\(client.texts)")
            client.call(2, name, "add(_:)", "[0]")
            let reply3 = try #require(await client.answer(2))
            #expect(reply3.contains(#""result":1"#))
        }
    }

    @Test(
        "while several activations end at once, each response follows the update that shows its effect",
        arguments: 0..<24)
    func order(number: Int) async throws {
        let isIdempotent = number % 4 < 2
        try await with(number % 2, calling: isIdempotent ? "addOnce(_:)" : "add(_:)") { name, client, engineRoute in
            if isIdempotent {
                engineRoute.set { $0 = .init() }
                _ = try #require(await client.answer(1))
                #expect(client.shown(of: "stream", before: "1") > 1, "\(client.texts)")
            } else {
                _ = try #require(await client.answer(1))
                engineRoute.set { $0 = .init() }
                client.call(2, name, "add(_:)", "[0]")
                _ = try #require(await client.answer(2))
                #expect(client.shown(of: "stream", before: "2") > 1, "\(client.texts)")
            }
        }
    }

    @Test(
        "@Idempotent calls wait while the coordination store is unavailable, and are answered afterwards",
        arguments: [0, 1])
    func away(place: Int) async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        let nodes = [try Node("a", engine), try Node("b", engine, through: engineRoute)]
        try await Node.with(nodes) {
            let name = nodes[1].names(1)[0]
            let client = try await nodes[place].textClient()
            engineRoute.set { $0.failsAppends = true }
            let before = engineRoute.appendCount
            for number in 1...2 { client.callOnce(number, name, "addOnce(_:)", "[1]") }
            let first = client.session
            let answers = nodes[1].server.context.idempotencyCache
            #expect(await eventually { engineRoute.appendCount > before && answers.count == 2 })
            engineRoute.set { $0.failsAppends = false }
            let reply4 = try #require(await client.answer(1))
            #expect(reply4.contains(#""result":1"#))
            let reply5 = try #require(await client.answer(2))
            #expect(reply5.contains(#""result":2"#))
            client.abort()
            let second = try await nodes[place].textClient()
            second.repeat(2, name, "addOnce(_:)", "[1]", of: first)
            let reply6 = try #require(await second.answer(2))
            #expect(reply6.contains(#""result":2"#))
            second.abort()
        }
    }
}

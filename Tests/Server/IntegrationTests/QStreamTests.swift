import QStream
import Relays
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Chains over the state of a real server.
@Suite(.timeLimit(.minutes(5))) struct QStreamTests {
    @Test("a remote state is the head of a chain, and the chain feeds a relay", arguments: TestLink.allCases)
    func remoteChain(link: TestLink) async throws {
        try await withTestServer(link: link) { server in
            await server.expose(SizedStateActor(actorSystem: server.actorSystem), as: "board")
        } body: { client, _ in
            let board = try client.resolve(SizedStateActor.self, id: "board")
            let journal = Journal()
            let counts = await board.observeState().stream().map { $0.count }.removeDuplicates()
            let subscription = await counts.tap { journal.record("\($0)") }
            let relay = try await counts.map { "count \($0)" }.relay()
            #expect(relay.currentValue == "count 0")
            for _ in 0..<3 { _ = try await board.add() }
            #expect(await counts.waitFor { $0 == 3 } == 3)
            await journal.wait(for: "3")
            let numbers = journal.entries.compactMap(Int.init)
            #expect(numbers == numbers.sorted() && numbers.first == 0)
            for await value in relay.stream where value == "count 3" { break }
            withExtendedLifetime(subscription) {}
        }
    }
}

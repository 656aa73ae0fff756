import Networking
import TestSupport
import Testing
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// Counts payments, and responds at the test's signal.
@Trebuchet
distributed actor BlockingPaymentCounter {
    private let journal: Journal
    private var count = 0

    init(journal: Journal, actorSystem: TrebuchetActorSystem) {
        self.journal = journal
        self.actorSystem = actorSystem
    }

    @Idempotent
    distributed func pay(_ name: String) async -> Int {
        journal.record("\(name) began")
        await journal.wait(for: "\(name) go")
        count += 1
        return count
    }

    @Idempotent
    distributed func refuse() throws -> Int { throw TrebuchetError(.application, "no") }

    distributed func payOnce(_ name: String) async -> Int { await pay(name) }
}

@Resolvable
protocol Paying: DistributedActor where ActorSystem == TrebuchetActorSystem {
    distributed func pay(_ name: String) async -> Int
}

@Suite(.timeLimit(.minutes(5))) struct RepeatedLocalCallsTests {
    private func cut(_ client: TrebuchetClient, _ number: Int) async {
        let core = client.core
        await core.loop.perform { core.connection.abandon(number: number, TransportError(.closed, "cut")) }
    }

    private func withTill(
        _ link: TestLink, _ body: (TrebuchetClient, Journal) async throws -> Void
    ) async throws {
        let journal = Journal()
        var options = TrebuchetClient.Options()
        options.reconnect.initialDelay = .milliseconds(1)
        try await withTestServer(link: link, reactors: 2, options: options) { server in
            await server.expose(BlockingPaymentCounter(journal: journal, actorSystem: server.actorSystem), as: "till")
        } body: { client, _ in
            try await body(client, journal)
        }
    }

    @Test("a call survives the end of its connection, and responds over the next one", arguments: TestLink.allCases)
    func repeated(link: TestLink) async throws {
        try await withTill(link) { client, journal in
            let till = try client.resolve(BlockingPaymentCounter.self, id: "till")
            let call = Task { try await till.pay("a") }
            await journal.wait(for: "a began")
            await cut(client, 1)
            journal.record("a go")
            #expect(try await call.value == 1)
            #expect(journal.entries == ["a began", "a go"])
            let error = await #expect(throws: TrebuchetError.self) { try await till.refuse() }
            #expect(error?.message == "no")
        }
    }

    @Test("other calls, and those through a protocol, are not repeated", arguments: TestLink.allCases)
    func notRepeated(link: TestLink) async throws {
        try await withTill(link) { client, journal in
            let till = try client.resolve(BlockingPaymentCounter.self, id: "till")
            let paying = try $Paying.resolve(id: TrebuchetActorID("till"), using: client.actorSystem)
            let calls = [Task { try await till.payOnce("a") }, Task { try await paying.pay("b") }]
            await journal.wait { Set($0).isSuperset(of: ["a began", "b began"]) }
            await cut(client, 1)
            for call in calls {
                let error = await #expect(throws: TrebuchetError.self) { try await call.value }
                #expect(error?.code == .unknownOutcome)
            }
            for name in ["a", "b"] { journal.record("\(name) go") }
        }
    }

    @Test(
        "a call on a draining connection is answered there, and repeated when the connection breaks",
        arguments: [true, false])
    func draining(breaks: Bool) async throws {
        try await withTill(.local) { client, journal in
            let till = try client.resolve(BlockingPaymentCounter.self, id: "till")
            let call = Task { try await till.pay("a") }
            await journal.wait(for: "a began")
            let core = client.core
            await core.loop.perform { core.connection.goAway(number: 1, reconnectAfter: .zero) }
            // Over the new connection.
            #expect(await eventually { client.connectionState.currentValue == .connected })
            if breaks { await cut(client, 1) }
            journal.record("a go")
            #expect(try await call.value == 1)
            #expect(journal.entries == ["a began", "a go"])
        }
    }
}

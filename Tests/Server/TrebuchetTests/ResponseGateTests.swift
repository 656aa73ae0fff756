import TestSupport
import Testing
import TrebuchetActors
import TrebuchetTesting

@testable import Trebuchet

/// Changes a number, and acknowledges the changes later.
@Trebuchet
distributed actor AcknowledgedCounter {
    private var gate: ResponseGate?
    private var number = 0
    private var tasks = 0

    init(actorSystem: TrebuchetActorSystem) { self.actorSystem = actorSystem }

    distributed func add() async -> Int {
        number += 1
        let (gate, number) = (gate ?? actorSystem.shard(of: id.home).map { ResponseGate(on: $0) }, number)
        guard let gate, actorSystem.shard(of: id.home)?.deferResponse(until: gate) == true else {
            tasks += 1
            return -1
        }
        self.gate = gate
        return number
    }

    /// Returns the number at the time of the acknowledgement.
    distributed func newest() async -> Int {
        guard let gate else { return number }
        _ = actorSystem.shard(of: id.home)?.deferResponse(until: gate) { [unowned self] in try _CallResult(self.number)
        }
        return -1
    }

    distributed func refuse() async throws {
        if let gate { _ = actorSystem.shard(of: id.home)?.deferResponse(until: gate) }
        throw TrebuchetError(.unavailable, "refused")
    }

    distributed func read() -> Int { number }

    distributed func acknowledge(fails: Bool) {
        let opened = gate
        gate = nil
        opened?.open(failing: fails ? TrebuchetError(.unknownOutcome, "not written") : nil)
    }
}

/// Responses of queued calls that wait for a write.
@Suite(.timeLimit(.minutes(5))) struct ResponseGateTests {
    private func withCounter(
        _ limits: ServerLimits = ServerLimits(), link: TestLink = .webSocket,
        _ body: (TrebuchetClient, AcknowledgedCounter) async throws -> Void
    ) async throws {
        try await withTestServer(link: link, reactors: 1, limits: limits) { server in
            await server.expose(AcknowledgedCounter(actorSystem: server.actorSystem), as: "counter")
        } body: { client, _ in
            try await body(client, client.resolve(AcknowledgedCounter.self, id: "counter"))
        }
    }

    @Test("responses wait for their gate, and other calls do not wait for them", arguments: TestLink.allCases)
    func waits(link: TestLink) async throws {
        try await withCounter(link: link) { _, counter in
            let calls = (0..<50).map { _ in Task.immediate { try await counter.add() } }
            let newest = Task.immediate { try await counter.newest() }
            #expect(try await counter.read() == 50)
            let later = Task.immediate { try await counter.add() }
            await #expect(throws: TrebuchetError.self) { try await counter.refuse() }
            try await counter.acknowledge(fails: false)
            var numbers: [Int] = []
            for call in calls { numbers.append(try await call.value) }
            #expect(numbers == Array(1...50))
            #expect(try await later.value == 51)
            #expect(try await newest.value == 51, "a result that is created at the end")
        }
    }

    @Test("a failed write is the error of all calls that wait for it, and of no later one")
    func fails() async throws {
        try await withCounter { _, counter in
            let calls = (0..<3).map { _ in Task.immediate { try await counter.add() } }
            #expect(try await counter.read() == 3)
            try await counter.acknowledge(fails: true)
            for call in calls {
                let error = await #expect(throws: TrebuchetError.self) { try await call.value }
                #expect(error?.code == .unknownOutcome)
            }
            let later = Task.immediate { try await counter.add() }
            #expect(try await counter.read() == 4)
            try await counter.acknowledge(fails: false)
            #expect(try await later.value == 4)
        }
    }

    @Test("a call whose gate stays closed ends at its deadline, and is answered once")
    func deadline() async throws {
        var limits = ServerLimits()
        limits.calls.maximumTimeout = .milliseconds(200)
        try await withCounter(limits) { _, counter in
            let error = await #expect(throws: TrebuchetError.self) { try await counter.add() }
            #expect(error?.code == .timeout)
            try await counter.acknowledge(fails: false)
            #expect(try await counter.read() == 1)
        }
    }

    @Test("a client that disconnects meanwhile leaves nothing behind")
    func disconnects() async throws {
        try await withTestServer(reactors: 1) { server in
            await server.expose(AcknowledgedCounter(actorSystem: server.actorSystem), as: "counter")
        } body: { server in
            let first = try await server.connect()
            let counter = try first.resolve(AcknowledgedCounter.self, id: "counter")
            let call = Task.immediate { try await counter.add() }
            let second = try await server.connect().resolve(AcknowledgedCounter.self, id: "counter")
            #expect(try await eventually { try await second.read() == 1 })
            await first.close()
            await #expect(throws: (any Error).self) { try await call.value }
            try await second.acknowledge(fails: false)
            #expect(try await second.read() == 1)
        }
    }
}

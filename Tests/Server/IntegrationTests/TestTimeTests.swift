import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Waits for the requested time.
@Trebuchet
private distributed actor JournalingActor {
    @StreamedState var answers: Int = 0
    private let journal: Journal

    init(journal: Journal, actorSystem: TrebuchetActorSystem) {
        self.journal = journal
        self.actorSystem = actorSystem
    }

    func deactivate() { journal.record("gone") }

    /// Changes nothing, so that the actor may be deactivated.
    distributed func look() {}

    distributed func answer() -> Int {
        answers += 1
        return answers
    }

    /// The number of its runs.
    @Idempotent
    distributed func count() -> Int {
        answers += 1
        return answers
    }

    distributed func ponder() async {
        journal.record("ponders")
        await journal.wait(for: "enough")
    }
}

@Suite(.timeLimit(.minutes(5))) struct TestTimeTests {
    private let clock = TestTime()
    private let journal = Journal()

    private func withJournalingActor<Result>(
        limits: ServerLimits = ServerLimits(), options: TrebuchetClient.Options = .init(),
        _ body: (JournalingActor, TrebuchetClient, TrebuchetServer) async throws -> Result
    ) async throws -> Result {
        try await withTestServer(limits: limits, options: options, clock: clock) { server in
            await server.expose(JournalingActor(journal: journal, actorSystem: server.actorSystem), as: "oracle")
        } body: { client, server in
            try await body(client.resolve(JournalingActor.self, id: "oracle"), client, server)
        }
    }

    @Test("the test clock drives the deadlines of clients, tasks and servers", arguments: ["client", "task", "server"])
    func deadlines(whose: String) async throws {
        var (limits, options) = (ServerLimits(), TrebuchetClient.Options())
        options.callTimeout = whose == "client" ? .seconds(3_600) : nil
        limits.calls.timeout = whose == "server" ? .seconds(3_600) : .seconds(36_000)
        limits.calls.maximumTimeout = .seconds(36_000)
        try await withJournalingActor(limits: limits, options: options) { (oracle, _, _) async throws -> Void in
            let call = Task {
                if whose == "task" {
                    try await withDeadline(.seconds(3_600)) { try await oracle.ponder() }
                } else {
                    try await oracle.ponder()
                }
            }
            await journal.wait(for: "ponders")
            await clock.advance(by: .seconds(3_500))
            #expect(try await oracle.answer() == 1)
            await clock.advance(by: .seconds(200))
            let error = await #expect(throws: TrebuchetError.self) { try await call.value }
            #expect(error?.code == .timeout)
            journal.record("enough")
        }
    }

    @Test("a value within an interval arrives at its end, not before")
    func interval() async throws {
        try await withJournalingActor { oracle, _, _ in
            let filter = StreamFilter.path("").atMost(every: .seconds(3_600))
            var values = await oracle.observeAnswers(filter: filter, as: Int.self).makeAsyncIterator()
            #expect(await values.next() == 0)
            for _ in 0..<3 { _ = try await oracle.answer() }
            await clock.advance(by: .seconds(3_500))
            // It would precede the response of this call.
            #expect(try await oracle.answer() == 4)
            await clock.advance(by: .seconds(200))
            #expect(await values.next() == 4)
        }
    }

    @Test("a client that answers pings stays connected for a day; a silent one is disconnected")
    func pings() async throws {
        try await withJournalingActor { oracle, client, server in
            let silent = try await RawPeer.connect(#require(server.address))
            #expect(await server.connectionCount == 2)
            await silent.pauseReading()
            await clock.advance(by: .seconds(15))
            #expect(await server.connectionCount == 2)
            await clock.advance(by: .seconds(45))
            #expect(await eventually { await server.connectionCount == 1 })
            await clock.advance(by: .seconds(86_400))
            #expect(client.connectionState.currentValue == .connected)
            #expect(try await oracle.answer() == 1)
            silent.abort()
        }
    }

    @Test("a client retries when its wait is over")
    func backoff() async throws {
        // A busy machine may not answer a ping within the moment that an hour takes here.
        var limits = ServerLimits()
        limits.connections.pingInterval = nil
        try await withTestServer(limits: limits, clock: clock) { [journal] server in
            await server.expose(JournalingActor(journal: journal, actorSystem: server.actorSystem), as: "oracle")
        } body: { test in
            var options = TrebuchetClient.Options()
            (options.reconnect.initialDelay, options.reconnect.maximumDelay) = (.seconds(3_600), .seconds(3_600))
            (options.callTimeout, options.pingInterval) = (nil, nil)
            let client = try await test.connect(options)
            let oracle = try client.resolve(JournalingActor.self, id: "oracle")
            #expect(try await oracle.answer() == 1)
            await test.kill()
            #expect(await eventually { client.connectionState.currentValue != .connected })
            try await test.restart()
            let call = Task { try await oracle.answer() }
            #expect(client.connectionState.currentValue != .connected)
            await clock.advance(by: .seconds(3_600))
            #expect(try await call.value == 1)
        }
    }

    @Test("a connection attempt has real time, however far the clock advances")
    func attempt() async throws {
        var (limits, options) = (ServerLimits(), TrebuchetClient.Options())
        (limits.connections.pingInterval, options.pingInterval) = (nil, nil)
        try await withTestServer(limits: limits, clock: clock) { [journal] server in
            await server.expose(JournalingActor(journal: journal, actorSystem: server.actorSystem), as: "oracle")
        } body: { [options] test in
            var faults = FaultyLink.Faults()
            faults.delay = .milliseconds(100)...(.milliseconds(100))
            let link = try FaultyLink(to: test.address, seed: 1, faults: faults)
            let client = TrebuchetClient(
                transport: .webSocket(host: link.address.host, port: link.address.port), options: options, clock: clock)
            let connection = Task { try await client.connect() }
            #expect(await eventually { client.connectionState.currentValue != .disconnected(nil) })
            await clock.advance(by: .seconds(3_600))
            try await connection.value
            await client.close()
            await link.close()
        }
    }

    @Test("an unused actor is deactivated after its idle time")
    func idle() async throws {
        try await withTestServer(clock: clock) { [journal] server in
            let system = server.actorSystem
            server.expose(JournalingActor.self, as: "oracles/*", idle: .seconds(3_600)) { _ in
                JournalingActor(journal: journal, actorSystem: system)
            }
        } body: { client, server in
            let oracle = try client.resolve(JournalingActor.self, id: "oracles/1")
            try await oracle.look()
            await clock.advance(by: .seconds(3_000))
            #expect(server.actorCount == 1)
            await clock.advance(by: .seconds(4_000))
            await journal.wait(for: "gone")
            #expect(try await oracle.answer() == 1)
        }
    }

    @Test("a rate admits calls again when its time is over, not before")
    func rates() async throws {
        var limits = ServerLimits()
        limits.calls.rate.perConnection = RateLimit(callsPerSecond: 1.0 / 3_600, burst: 1)
        try await withJournalingActor(limits: limits) { (oracle, _, _) async throws -> Void in
            _ = try await oracle.answer()
            let refused = await #expect(throws: TrebuchetError.self) { _ = try await oracle.answer() }
            #expect(refused?.code == .rateLimited)
            await clock.advance(by: .seconds(3_000))
            await #expect(throws: TrebuchetError.self) { _ = try await oracle.answer() }
            await clock.advance(by: .seconds(700))
            #expect(try await oracle.answer() == 2)
        }
    }

    @Test("the response of an @Idempotent call is recorded for its time, not longer")
    func answers() async throws {
        var limits = ServerLimits()
        limits.idempotency.retention = .seconds(3_600)
        limits.connections.pingInterval = nil
        try await withJournalingActor(limits: limits) { (_, _, server) async throws -> Void in
            let address = try #require(server.address)
            let first = try await RawPeer.connect(address)
            first.call("1", "oracle", "count()")
            #expect(try await first.next()?.payload.result == 1)
            let session = first.session
            first.abort()
            let second = try await RawPeer.connect(address)
            await clock.advance(by: .seconds(3_500))
            second.call("1", "oracle", "count()", of: session)
            #expect(try await second.next()?.payload.result == 1)
            await clock.advance(by: .seconds(200))
            second.call("1", "oracle", "count()", of: session)
            #expect(try await second.next()?.payload.error?.code == "unknownOutcome")
            #expect(server.rememberedAnswerCount == 0)
            second.abort()
        }
    }

    @Test("a call to an actor of a client uses the test clock")
    func clientCalls() async throws {
        var limits = ServerLimits()
        limits.clientCalls.timeout = .seconds(3_600)
        limits.calls.maximumTimeout = .seconds(36_000)
        limits.calls.timeout = .seconds(36_000)
        var options = TrebuchetClient.Options()
        options.callTimeout = nil
        try await withTestServer(limits: limits, options: options, clock: clock) { server in
            await server.expose(ClientReferenceHolder(actorSystem: server.actorSystem), as: "host")
        } body: { client, _ in
            let host = try client.resolve(ClientReferenceHolder.self, id: "host")
            let clientActor = CalledClientActor(journal: journal, actorSystem: client.actorSystem)
            try await host.enter(clientActor)
            let call = Task { try await withDeadline(.seconds(7_200)) { try await host.askToWait(36_000_000) } }
            await journal.wait(for: "waits")
            await clock.advance(by: .seconds(3_500))
            #expect(try await host.count() == 1)
            await clock.advance(by: .seconds(200))
            #expect(try await call.value.first == "timeout")
        }
    }

    @Test("clocks of two tests are independent")
    func independentClocks() async throws {
        let other = TestTime()
        try await withJournalingActor { oracle, _, _ in
            let call = Task { try await oracle.ponder() }
            await journal.wait(for: "ponders")
            await other.advance(by: .seconds(86_400))
            #expect(try await oracle.answer() == 1)
            journal.record("enough")
            try await call.value
        }
    }
}

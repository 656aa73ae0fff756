import Testing
import Trebuchet
import TrebuchetTesting

@Trebuchet
private distributed actor Notes {
    private var notes: [String] = []
    private var waiting = 0
    /// Never yields.
    private let confirmations = AsyncStream<Void> { _ in }

    @Idempotent
    distributed func add(_ note: String) { notes.append(note) }
    @Idempotent
    distributed func all() -> [String] { notes }

    /// Waits for a confirmation that never arrives.
    distributed func confirm() async throws {
        waiting += 1
        for await _ in confirmations {}
        try Task.checkCancellation()
    }
    distributed func unconfirmed() -> Int { waiting }
}

/// The examples of Docs/Guides/TestingYourApp.md.
@Suite(.timeLimit(.minutes(5))) struct AppTestExamples {
    @Test("acknowledged notes are stored exactly once under network faults")
    func badNetwork() async throws {
        try await withTestServer { server in
            await server.expose(Notes(actorSystem: server.actorSystem), as: "notes")
        } body: { _, server in
            let link = try FaultyLink(to: #require(server.address), seed: 17, faults: .harsh)
            var options = TrebuchetClient.Options()
            options.reconnect.initialDelay = .milliseconds(5)
            options.reconnect.retriesFirstConnection = true
            let client = TrebuchetClient(
                transport: .webSocket(host: link.address.host, port: link.address.port), options: options)
            try await client.connect()
            let notes = try client.resolve(Notes.self, id: "notes")
            for number in 1...50 { try await notes.add("\(number)") }
            await link.setFaults(.none)
            await link.disconnectAll()
            #expect(try await notes.all() == (1...50).map(String.init))
            await client.close()
            await link.close()
        }
    }

    @Test("the helpers take the arguments that the guide lists, in its order")
    func arguments() async throws {
        let clock = TestTime(reactors: 2)
        var options = TrebuchetClient.Options()
        options.reconnect.initialDelay = .milliseconds(5)
        try await withTestServer(
            link: .local, reactors: 2, limits: ServerLimits(), options: options, access: .open, store: MemoryStore(),
            showsErrorText: true, clock: clock
        ) { server in
            await server.expose(Notes(actorSystem: server.actorSystem), as: "notes")
        } body: { client, _ in
            try await client.resolve(Notes.self, id: "notes").add("a")
        }
        try await withTestServer(
            reactors: 2, limits: ServerLimits(), access: .open, store: MemoryStore(), showsErrorText: true, clock: clock
        ) { server in
            await server.expose(Notes(actorSystem: server.actorSystem), as: "notes")
        } body: { test in
            let client = try await test.connect(options)
            try await client.resolve(Notes.self, id: "notes").add("a")
            await test.stop(drain: .zero)
            try await test.restart(drain: .zero)
        }
        let own = try await TestServer { server in
            await server.expose(Notes(actorSystem: server.actorSystem), as: "notes")
        }
        let link = try FaultyLink(to: own.address, seed: 1)
        var faults = FaultyLink.Faults()
        faults.cutAfterBytes = 1_000...50_000
        (faults.resets, faults.halfOpens, faults.lateDeliveries) = (0.2, 0.2, 0.2)
        faults.halfOpenTime = .milliseconds(100)...(.seconds(1))
        (faults.stallAfterBytes, faults.stallTime) = (1_000...2_000, .zero...(.milliseconds(1)))
        (faults.delay, faults.chunkBytes) = (.zero...(.milliseconds(1)), 1...100)
        for faults in [.none, .mild, .harsh, faults, .none] { await link.setFaults(faults) }
        let client = TrebuchetClient(
            transport: .webSocket(host: link.address.host, port: link.address.port), options: options)
        for cut in [.reset, .inOrder, .halfOpen(.milliseconds(1)), .late(.milliseconds(1))] as [FaultyLink.Cut] {
            try await client.connect()
            try await client.resolve(Notes.self, id: "notes").add("a")
            // The client cannot reconnect before the test has seen the loss.
            try await link.refuseConnections {
                await link.disconnectAll(cut)
                for await state in client.connectionState.stream where state != .connected { break }
            }
        }
        await link.pauseTraffic()
        await link.resumeTraffic()
        #expect(try await link.refuseConnections { 7 } == 7)
        try await link.refuseConnections(for: .milliseconds(1))
        #expect(link.counters.halfOpens == 1 && link.counters.lateDeliveries == 1)
        await client.close()
        await link.close()
        await own.shutDown()
    }

    @Test("an unconfirmed note times out after an hour")
    func waitTime() async throws {
        let clock = TestTime()
        try await withTestServer(clock: clock) { server in
            await server.expose(Notes(actorSystem: server.actorSystem), as: "notes")
        } body: { client, _ in
            let notes = try client.resolve(Notes.self, id: "notes")
            let confirmed = Task { try await withDeadline(.seconds(3_600)) { try await notes.confirm() } }
            while try await notes.unconfirmed() == 0 {}
            await clock.advance(by: .seconds(3_600))
            let error = await #expect(throws: TrebuchetError.self) { try await confirmed.value }
            #expect(error?.code == .timeout)
        }
    }
}

import Testing
import Trebuchet
import TrebuchetTesting

@Trebuchet
private distributed actor Notes {
    private var notes: [String] = []
    private var waiting = 0
    /// None ever comes.
    private let confirmations = AsyncStream<Void> { _ in }

    @Idempotent
    distributed func add(_ note: String) { notes.append(note) }
    @Idempotent
    distributed func all() -> [String] { notes }

    /// Waits for somebody who does not come.
    distributed func confirm() async throws {
        waiting += 1
        for await _ in confirmations {}
        try Task.checkCancellation()
    }
    distributed func unconfirmed() -> Int { waiting }
}

/// The examples of the guide to an app's tests.
@Suite(.timeLimit(.minutes(1))) struct AppTestExamples {
    @Test("what was acknowledged is there once, whatever the network does")
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
            await link.use(.none)
            await link.cutAll()
            #expect(try await notes.all() == (1...50).map(String.init))
            await client.close()
            await link.close()
        }
    }

    @Test("a note that nobody confirms within an hour is given up")
    func patience() async throws {
        let clock = TestClock()
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

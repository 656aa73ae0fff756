import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@Suite(.timeLimit(.minutes(5))) struct TestServerTests {
    private func withDiary(
        journal: Journal = Journal(), _ body: (TestServer, Diary, Waiter, TrebuchetClient) async throws -> Void
    ) async throws {
        try await withTestServer(store: MemoryStore()) { server in
            journal.record("starts")
            await server.expose(Diary(actorSystem: server.actorSystem), as: "diary")
            await server.expose(Waiter(journal: journal, actorSystem: server.actorSystem), as: "waiter")
        } body: { test in
            var options = TrebuchetClient.Options()
            options.reconnect.initialDelay = .milliseconds(5)
            options.reconnect.maximumDelay = .milliseconds(50)
            let client = try await test.connect(options)
            try await body(
                test, client.resolve(Diary.self, id: "diary"), client.resolve(Waiter.self, id: "waiter"), client)
        }
    }

    @Test("a restarted server has its port and its store, and its clients reconnect")
    func restarted() async throws {
        let journal = Journal()
        try await withDiary(journal: journal) { test, diary, waiter, client in
            var pages = await diary.observePages().makeAsyncIterator()
            #expect(await pages.next() == [])
            #expect(try await diary.write("a") == 1)
            #expect(await pages.next() == ["a"])
            let (address, first) = (test.address, test.server)
            // In order: in-flight calls may end.
            let call = Task { try await waiter.hold("x") }
            await journal.wait(for: "x began")
            let restart = Task { try await test.restart(drain: .seconds(60)) }
            for await state in client.connectionState.stream where state == .draining { break }
            journal.record("x go")
            #expect(try await call.value == "went on")
            try await restart.value
            #expect(test.address == address)
            #expect(test.server.address == address)
            #expect(test.server !== first)
            #expect(try await diary.write("b") == 2)
            while let next = await pages.next() { if next == ["a", "b"] { break } }
            #expect(journal.entries.count { $0 == "starts" } == 2)
        }
    }

    @Test("a killed server answers and writes nothing, and rejects until it is started again")
    func killed() async throws {
        let journal = Journal()
        try await withDiary(journal: journal) { test, diary, waiter, client in
            #expect(try await diary.write("a") == 1)
            let left = try Diary.resolve(id: TrebuchetActorID("diary"), using: test.server.actorSystem)
            let states = Mutex<[TrebuchetClient.ConnectionState]>([])
            let follower = Task {
                for await state in client.connectionState.stream { states.withLock { $0.append(state) } }
            }
            let call = Task { try await waiter.hold("x") }
            await journal.wait(for: "x began")
            await test.kill()
            let error = await #expect(throws: TrebuchetError.self) { _ = try await call.value }
            #expect(error?.code == .unknownOutcome)
            let refused = await #expect(throws: TransportError.self) { _ = try await test.connect() }
            #expect(refused?.code == .refused)
            // The actor is in this process and continues; the store does not receive its changes.
            #expect(try await left.write("lost") == 2)
            try await test.restart()
            #expect(try await diary.read() == ["a"])
            #expect(try await diary.write("b") == 2)
            follower.cancel()
            #expect(!states.withLock { $0 }.contains(.draining))
        }
    }

    @Test("a test server applies an access policy when it has one", arguments: TestLink.allCases)
    func access(link: TestLink) async throws {
        let access = AccessPolicy(authenticate: AccessPolicy.apiKeys(["k3y": Principal(id: "ada")]))
        var options = TrebuchetClient.Options()
        options.token = { "k3y" }
        try await withTestServer(link: link, options: options, access: access) { server in
            await server.expose(Calculator(actorSystem: server.actorSystem), as: "calculator")
        } body: { client, server in
            #expect(try await client.resolve(Calculator.self, id: "calculator").answer == 42)
            let stranger = TrebuchetClient(
                transport: link == .local
                    ? .local(server) : .webSocket(host: "127.0.0.1", port: try #require(server.address).port))
            await #expect(throws: TransportError.self) { try await stranger.connect() }
        }
    }
}

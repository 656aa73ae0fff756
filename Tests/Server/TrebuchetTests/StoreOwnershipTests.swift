import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Two servers of one process and one store.
@Suite(.timeLimit(.minutes(5))) struct StoreOwnershipTests {
    let store = GatedStore()

    private func server(_ port: Int = 0) async -> (TrebuchetServer, Diary) {
        let server = TrebuchetServer(transport: .webSocket(port: port), reactors: 1, store: store)
        let diary = Diary(actorSystem: server.actorSystem)
        await server.expose(diary, as: "diary")
        return (server, diary)
    }

    @Test("a second server on one store is rejected, and owns it once the first has shut down")
    func second() async throws {
        let (first, diary) = await server()
        try await first.start()
        _ = try await diary.write("a")
        let (second, _) = await server()
        let error = await #expect(throws: StateStoreError.self) { try await second.start() }
        #expect(error?.code == .inUse)
        // The same holds without a listener.
        let client = TrebuchetClient(transport: .local(second))
        try await client.connect()
        let refused = await #expect(throws: TrebuchetError.self) {
            try await client.resolve(Diary.self, id: "diary").write("b")
        }
        #expect(refused?.code == .unavailable)
        #expect(refused?.message.contains("in use by another server") == true)
        await first.shutdown(drain: .zero)
        try await second.start()
        #expect(try await client.resolve(Diary.self, id: "diary").read() == ["a"])
        await client.close()
        await second.shutdown(drain: .zero)
    }

    @Test("a store that wraps another one is the same store")
    func wrapped() async throws {
        try await withTestServer(store: store) { server in
            await server.expose(Diary(actorSystem: server.actorSystem), as: "diary")
        } body: { (_: TestServer) async throws in
            let (second, _) = await server()
            let error = await #expect(throws: StateStoreError.self) { try await second.start() }
            #expect(error?.code == .inUse)
        }
    }

    @Test("a server that is freed, killed or fails to listen releases its store")
    func freed() async throws {
        do {
            let (dropped, _) = await server()
            try await dropped.start()
        }
        let (killed, _) = await server()
        let address = try await killed.start()
        let other = TrebuchetServer(transport: .webSocket(port: address.port), store: MemoryStore())
        await #expect(throws: (any Error).self) { try await other.start() }
        await killed.cut()
        let (last, _) = await server()
        try await last.start()
        await last.shutdown(drain: .zero)
    }

    @Test("a change after a server's end is not written: the store may belong to the next server")
    func late() async throws {
        let (server, diary) = await server()
        try await server.start()
        _ = try await diary.write("a")
        await server.shutdown(drain: .zero)
        let writes = store.journal.entries
        _ = try await diary.write("late")
        // One turn after the one that would write it.
        #expect(try await diary.read() == ["a", "late"])
        #expect(store.journal.entries == writes)
        #expect(try await store.text("diary.pages") == #"["a"]"#)
    }
}

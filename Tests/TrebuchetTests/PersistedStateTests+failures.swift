import Networking
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// What cannot be written, and who is told.
extension PersistedStateTests {
    @Test("a write that fails is the caller's error; the change is not shown until a later write keeps it")
    func failingWrite() async throws {
        try await withDiary(reactors: 1) { (diary, _, _) async throws in
            var pages = await diary.observePages().makeAsyncIterator()
            #expect(await pages.next() == [])
            store.failWrites(StateStoreError(.full, "data.db: the disk is full"))
            for _ in 0..<2 {
                let error = await #expect(throws: TrebuchetError.self) { try await diary.write("a") }
                #expect(error?.code == .unknownOutcome)
                #expect(error?.message.contains("the disk is full") == true)
            }
            await #expect(throws: TrebuchetError.self) { try await diary.read() }
            store.failWrites(nil)
            #expect(try await diary.write("b") == 3)
            #expect(await pages.next() == ["a", "a", "b"])
            #expect(try await store.text("diary.pages") == #"["a","a","b"]"#)
        }
    }

    @Test("a write that failed is tried again when nobody calls")
    func retry() async throws {
        try await withDiary(reactors: 1) { (diary, _, _) async throws in
            var pages = await diary.observePages().makeAsyncIterator()
            #expect(await pages.next() == [])
            store.failWrites(StateStoreError(.full, "full"))
            await #expect(throws: TrebuchetError.self) { try await diary.write("a") }
            store.failWrites(nil)
            #expect(await pages.next() == ["a"])
        }
    }

    @Test("a state without a form fails its own actor's calls only")
    func unencodable() async throws {
        try await withTestServer(reactors: 1, store: store) { server in
            await server.expose(Scale(actorSystem: server.actorSystem), as: "scale")
            await server.expose(Diary(actorSystem: server.actorSystem), as: "diary")
        } body: { (client, _) async throws in
            let scale = try client.resolve(Scale.self, id: "scale")
            let diary = try client.resolve(Diary.self, id: "diary")
            let broken = Task { try await scale.breakDown() }
            #expect(try await diary.write("a") == 1)
            let error = await #expect(throws: TrebuchetError.self) { try await broken.value }
            #expect(error?.code == .internal)
            try await scale.mend()
            #expect(try await store.text("scale.weight") == "1")
        }
    }

    @Test("a state over the limit fails its own actor's calls only")
    func tooLarge() async throws {
        var limits = ServerLimits()
        limits.persistedStateSize = 100
        try await withTestServer(reactors: 1, limits: limits, store: store) { server in
            await server.expose(Diary(actorSystem: server.actorSystem), as: "diary")
            await server.expose(Diary(actorSystem: server.actorSystem), as: "other")
        } body: { (client, _) async throws in
            let diary = try client.resolve(Diary.self, id: "diary")
            let error = await #expect(throws: TrebuchetError.self) {
                try await diary.write(String(repeating: "x", count: 200))
            }
            #expect(error?.code == .internal)
            #expect(try await client.resolve(Diary.self, id: "other").write("a") == 1)
        }
    }

    @Test("what can never be written is named in the log when its actor is taken out of reach")
    func lostForGood() async throws {
        var limits = ServerLimits()
        limits.persistedStateSize = 100
        let journal = Journal()
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0), limits: limits, store: store,
            log: { journal.note($0) })
        // A name that nobody reads as a line of its own.
        let name = "diary\ntrebuchet: \u{1B}[2Jforged"
        await server.expose(Diary(actorSystem: server.actorSystem), as: name)
        let own = try Diary.resolve(id: TrebuchetActorID(name), using: server.actorSystem)
        _ = try await own.write(String(repeating: "x", count: 200))
        await server.unexpose(name)
        let line = journal.entries.last { !$0.contains("reactor-") } ?? ""
        #expect(
            line.contains(#"actor 'diary\ntrebuchet: \u{1B}[2Jforged'"#) && line.contains("its last change is lost"),
            "\(line)")
        #expect(line.contains("larger than the 100 allowed"), "\(line)")
        await server.shutdown()
    }
}

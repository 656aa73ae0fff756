import Networking
import Synchronization
import TestSupport
import Testing
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetActors

/// Changes that cannot be written, and the resulting errors.
extension PersistedStateTests {
    @Test("a failed write is the caller's error; the change is published after a later write")
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

    @Test("a failed write is retried without further calls")
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

    @Test(
        "calls wait for an unreachable store, and are answered after the change once it returns",
        arguments: ["in place", "suspending"])
    func storeAway(kind: String) async throws {
        try await withDiary(reactors: 1) { (diary, client, _) async throws in
            var pages = await diary.observePages().makeAsyncIterator()
            #expect(await pages.next() == [])
            store.failWrites(StateStoreError(.unavailable, "the engine is away"))
            let journal = Journal()
            let write = Task {
                let count = kind == "in place" ? try await diary.write("a") : try await diary.writeLater("a")
                journal.record("written")
                return count
            }
            await store.journal.wait(for: "write 1")
            let read = Task {
                let pages = try await diary.read()
                journal.record("read")
                return pages
            }
            // The call triggers a retry.
            await store.journal.wait(for: "write 2")
            try await roundTrips(client)
            #expect(journal.entries == [])
            store.failWrites(nil)
            #expect(try await write.value == 1)
            #expect(try await read.value == ["a"])
            #expect(await pages.next() == ["a"])
            #expect(try await store.text("diary.pages") == #"["a"]"#)
        }
    }

    @Test("calls that wait for an unreachable store when the server ends have an unknown outcome")
    func endsWhileAway() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 1, store: store)
        await server.expose(Diary(actorSystem: server.actorSystem), as: "diary")
        let address = try await server.start()
        let shard = server.shards[0]
        let states = try #require(server.context.directory.record(ActorName("diary"))?.persisted)
        store.failWrites(StateStoreError(.unavailable, "the engine is away"))
        let client = TrebuchetClient(transport: .webSocket(host: address.host, port: address.port))
        try await client.connect()
        let diary = try client.resolve(Diary.self, id: "diary")
        let call = Task { try await diary.write("a") }
        await store.journal.wait(for: "write 1")
        let errorCode = Mutex<TrebuchetError.Code?>(nil)
        await shard.reactor.perform { states.whenWritten { error in errorCode.withLock { $0 = error?.code } } }
        await server.shutdown(drain: .zero)
        #expect(errorCode.withLock { $0 } == .unknownOutcome)
        await #expect(throws: TrebuchetError.self) { try await call.value }
        await client.close()
    }

    @Test(
        "a subscriber that arrives during a failed write receives the value once a write succeeds",
        arguments: [false, true])
    func observerBehindFailure(isFiltered: Bool) async throws {
        try await withDiary(reactors: 1) { (diary, client, _) async throws in
            store.close()
            let first = Task { try await diary.write("a") }
            await store.journal.wait(for: "write 1")
            let seen = Mutex<[[String]]>([])
            let observation = Task.immediate {
                guard isFiltered else {
                    for await pages in await diary.observePages() { seen.withLock { $0.append(pages) } }
                    return
                }
                for await page in await diary.observePages(filter: .path("/0"), as: String.self) {
                    seen.withLock { $0.append([page]) }
                }
            }
            defer { observation.cancel() }
            try await roundTrips(client)
            store.failWrites(StateStoreError(.full, "full"))
            store.open()
            await #expect(throws: TrebuchetError.self) { try await first.value }
            #expect(seen.withLock { $0 } == [])
            store.failWrites(nil)
            // Without calls: the write is retried automatically.
            #expect(await eventually { seen.withLock { $0 } == [["a"]] })
        }
    }

    @Test("a value of an older form is removed when the log that replaces it is written, not before")
    func olderValue() async throws {
        try await store.put(#"["old"]"#, "diary.pages")
        let key = StateKey("states", "diary.pages")
        try await withDiary(reactors: 1) { (diary, _, _) async throws in
            store.failWrites(StateStoreError(.full, "full"))
            await #expect(throws: TrebuchetError.self) { try await diary.write("a") }
            #expect(try await store.get(key) != nil)
            store.failWrites(nil)
            #expect(try await diary.write("b") == 3)
            #expect(try await store.text("diary.pages") == #"["old","a","b"]"#)
            #expect(try await store.get(key) == nil)
        }
    }

    @Test("recorded responses of an earlier process are removed, also when the first listing fails")
    func earlierAnswers() async throws {
        let key = IdempotencyNamespace.key("earlier", 1, of: "diary")
        try await store.put([1], key)
        store.failReads(StateStoreError(.full, "not now"))
        var limits = ServerLimits()
        limits.idempotency.retention = .milliseconds(20)
        try await withTestServer(reactors: 1, limits: limits, store: store) { _ in
        } body: { (_, _) async throws in
            store.failReads(nil)
            #expect(try await eventually { try await store.get(key) == nil })
        }
    }

    @Test("the responses of an actor that wait for the store are bounded")
    func mostAnswers() async throws {
        try await withDiary(reactors: 1) { (_, _, server) async throws in
            let shard = server.shards[0]
            let writer = try #require(shard.stateWriter)
            let refusal = await shard.reactor.perform { () -> (UInt64, TrebuchetError)? in
                let states = PersistedStates(name: "diary", home: shard.states, writer: writer)
                for number in 0..<20_000 as Range<UInt64> {
                    let call = IdempotencyRecord(
                        IdempotencyNamespace.key("c", number, of: "diary"), digest: 1, principal: nil, in: StubQuota())
                    if let refusal = states.recordCallStart(call) { return (number, refusal) }
                }
                return nil
            }
            #expect(refusal?.0 == 16_384)
            #expect(refusal?.1.code == .unavailable)
        }
    }

    @Test("a response waits for all values of the handoff state, also for those that do not fit into one write")
    func largeHandoffState() async throws {
        try await withDiary(reactors: 1) { (_, _, server) async throws in
            let shard = server.shards[0]
            let writer = try #require(shard.stateWriter)
            let (answered, written) = await shard.reactor.perform { () -> ([Bool], [Int]) in
                let states = PersistedStates(name: "room", home: shard.states, writer: writer)
                let handoffState = HandoffState("rooms", of: "room", by: states)
                states.handoffState = handoffState
                var isAnswered = false
                for number in 1...4 {
                    handoffState.setValue([UInt8](repeating: 0, count: 256 << 10), as: "\(number)")
                }
                states.whenWritten { _ in isAnswered = true }
                var (answered, written, slices): ([Bool], [Int], Int) = ([], [], 0)
                while let writes = states.beginWrite(slices: &slices), !writes.isEmpty {
                    written.append(writes.count)
                    states.endWrite(nil)
                    answered.append(isAnswered)
                }
                return (answered, written)
            }
            #expect(written == [2, 2])
            #expect(answered == [false, true])
        }
    }

    private struct StubQuota: RecordedResponseQuota {
        func reserve(_ bytes: Int) -> Bool { false }
        func release(_ bytes: Int) {}
    }

    @Test("a state that cannot be encoded fails only its own actor's calls")
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

    @Test("a state over the limit fails only its own actor's calls")
    func tooLarge() async throws {
        var limits = ServerLimits()
        limits.persistence.stateBytes = 100
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

    @Test("a state that can never be written is named in the log when its actor is unexposed")
    func lostForGood() async throws {
        var limits = ServerLimits()
        limits.persistence.stateBytes = 100
        let journal = Journal()
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0), limits: limits, store: store,
            log: ConsoleLog { journal.record($0) })
        // A name that must not look like a separate log line.
        let name = "diary\ntrebuchet: \u{1B}[2Jforged"
        await server.expose(Diary(actorSystem: server.actorSystem), as: name)
        let own = try Diary.resolve(id: TrebuchetActorID(name), using: server.actorSystem)
        _ = try await own.write(String(repeating: "x", count: 200))
        await server.unexpose(name)
        let line = journal.entries.last { !$0.contains("reactor-") } ?? ""
        #expect(
            line.contains(#"actor 'diary\ntrebuchet: \u{1B}[2Jforged'"#) && line.contains("its last change is lost"),
            "\(line)")
        #expect(line.contains("the limit is 100"), "\(line)")
        await server.shutdown()
    }
}

import Networking
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// `@StreamedState(persisted: true)` at a server whose store the test controls.
@Suite(.timeLimit(.minutes(5))) struct PersistedStateTests {
    let store = GatedStore()

    func withDiary(
        link: TestLink = .webSocket, reactors: Int? = nil,
        _ body: (Diary, TrebuchetClient, TrebuchetServer) async throws -> Void
    ) async throws {
        try await withTestServer(link: link, reactors: reactors, store: store) { server in
            await server.expose(Diary(actorSystem: server.actorSystem), as: "diary")
            await server.expose(Calculator(actorSystem: server.actorSystem), as: "calculator")
        } body: { client, server in
            try await body(client.resolve(Diary.self, id: "diary"), client, server)
        }
    }

    /// Calls an actor without persisted states on the same connection: each response implies that earlier requests were processed.
    func roundTrips(_ client: TrebuchetClient) async throws {
        let calculator = try client.resolve(Calculator.self, id: "calculator")
        for number in 0..<3 { #expect(try await calculator.same(number) == number) }
    }

    // MARK: Writes before publication

    @Test(
        "a response is sent after the store has the call's changes", arguments: TestLink.allCases,
        ["in place", "suspending", "throwing"])
    func answerAfterWrite(link: TestLink, kind: String) async throws {
        try await withDiary(link: link) { (diary, client, _) async throws in
            store.close()
            let isAnswered = Mutex(false)
            let call = Task {
                defer { isAnswered.withLock { $0 = true } }
                switch kind {
                case "in place": _ = try await diary.write("a")
                case "suspending": _ = try await diary.writeLater("a")
                default: _ = try? await diary.writeAndThrow("a")
                }
            }
            await store.journal.wait(for: "write 1")
            try await roundTrips(client)
            #expect(!isAnswered.withLock { $0 })
            #expect(try await store.text("diary.pages") == nil)
            store.open()
            try await call.value
            #expect(try await store.text("diary.pages") == #"["a"]"#)
        }
    }

    @Test("a call without changes does not wait", arguments: TestLink.allCases)
    func unchanged(link: TestLink) async throws {
        try await withDiary(link: link) { (diary, _, _) async throws in
            _ = try await diary.write("a")
            store.close()
            #expect(try await diary.read() == ["a"])
            #expect(try await diary.whose() == "nobody")
            store.open()
        }
    }

    @Test("a call that may have read unwritten changes waits for them, and responses keep their order")
    func readersWait() async throws {
        try await withDiary(reactors: 1) { (diary, client, _) async throws in
            store.close()
            let journal = Journal()
            // One thread for both: on two threads the later call may record its response first.
            let tasks = ReactorGroup.client.tasks
            let write = Task(executorPreference: tasks) {
                _ = try await diary.write("a")
                journal.record("written")
            }
            await store.journal.wait(for: "write 1")
            let read = Task(executorPreference: tasks) {
                let pages = try await diary.read()
                journal.record("read \(pages)")
            }
            try await roundTrips(client)
            #expect(journal.entries == [])
            store.open()
            try await write.value
            try await read.value
            #expect(journal.entries == ["written", #"read ["a"]"#])
        }
    }

    @Test("calls continue during a write, and all their changes form the next write")
    func groups() async throws {
        let own = Mutex<Diary?>(nil)
        try await withTestServer(reactors: 1, store: store) { server in
            let diary = Diary(actorSystem: server.actorSystem)
            own.withLock { $0 = diary }
            await server.expose(diary, as: "diary")
        } body: { (client, _) async throws in
            let diary = try client.resolve(Diary.self, id: "diary")
            let atServer = try #require(own.withLock { $0 })
            store.close()
            let first = Task { try await diary.write("0") }
            await store.journal.wait(for: "write 1")
            let others = (1...50).map { number in Task { try await diary.write("\(number)") } }
            #expect(try await eventually { try await atServer.read().count == 51 })
            store.letOneThrough()
            #expect(try await first.value == 1)
            await store.journal.wait(for: "write 2")
            store.open()
            var counts = Set<Int>()
            for call in others { counts.insert(try await call.value) }
            #expect(counts == Set(2...51))
            #expect(store.journal.entries == ["write 1", "write 2"])
        }
    }

    @Test(
        "stream updates are sent after they are written, and a caller sees its own changes",
        arguments: TestLink.allCases)
    func updatesAfterWrite(link: TestLink) async throws {
        try await withDiary(link: link) { (diary, client, server) async throws in
            var pages = await diary.observePages().makeAsyncIterator()
            #expect(await pages.next() == [])
            store.close()
            let call = Task { try await diary.write("a") }
            await store.journal.wait(for: "write 1")
            // A new subscriber receives the written value, if any.
            let other = TrebuchetClient(transport: .local(server))
            try await other.connect()
            let seen = Mutex<[[String]]>([])
            let late = Task {
                for await pages in await (try other.resolve(Diary.self, id: "diary")).observePages() {
                    seen.withLock { $0.append(pages) }
                    if pages == ["a"] { break }
                }
            }
            // The state that is not persisted does not wait.
            var readers = await diary.observeReaders().makeAsyncIterator()
            #expect(await readers.next() == 0)
            try await roundTrips(client)
            try await roundTrips(other)
            #expect(!seen.withLock { $0.contains(["a"]) })
            store.open()
            #expect(try await call.value == 1)
            #expect(await pages.next() == ["a"])
            try await late.value
            #expect(seen.withLock { $0.last } == ["a"])
            await other.close()
        }
    }

    // MARK: Loading

    @Test("a filter shows neither unwritten changes nor unwritten values", arguments: TestLink.allCases)
    func filtered(link: TestLink) async throws {
        try await withDiary(link: link) { (diary, client, _) async throws in
            let first = StreamFilter.path("/0")
            var early = await diary.observePages(filter: first, as: String?.self).makeAsyncIterator()
            #expect(await early.next() == .some(nil))
            store.close()
            let write = Task { try await diary.write("a") }
            await store.journal.wait(for: "write 1")
            let late = await diary.observePages(filter: first.distinct(), as: String?.self)
            let shown = Mutex<[String?]>([])
            let reader = Task {
                for await page in late {
                    shown.withLock { $0.append(page) }
                    return
                }
            }
            try await roundTrips(client)
            #expect(shown.withLock { $0 } == [])
            store.open()
            _ = try await write.value
            #expect(await early.next() == "a")
            await reader.value
            #expect(shown.withLock { $0 } == ["a"])
        }
    }

    @Test("the persisted state is loaded before the first call and the first stream", arguments: TestLink.allCases)
    func loading(link: TestLink) async throws {
        try await store.put(#"["kept"]"#, "diary.pages")
        try await withDiary(link: link) { (diary, _, _) async throws in
            var pages = await diary.observePages().makeAsyncIterator()
            #expect(await pages.next() == ["kept"])
            #expect(try await diary.write("b") == 2)
            #expect(try await diary.whose() == "nobody", "a state that was never persisted has its initial value")
        }
        #expect(try await store.text("diary.pages") == #"["kept","b"]"#)
        #expect(try await store.text("diary.owner") == nil)
    }

    @Test("on-demand actors are loaded before their first call, each by its name")
    func onDemand() async throws {
        for round in 1...2 {
            try await withTestServer(store: store) { server in
                let system = server.actorSystem
                server.expose(Diary.self, as: "diaries/*") { _ in Diary(actorSystem: system) }
            } body: { (client, _) async throws in
                for name in ["a", "b"] {
                    let diary = try client.resolve(Diary.self, id: "diaries/\(name)")
                    #expect(try await diary.write("\(name)\(round)") == round)
                }
            }
        }
        #expect(try await store.text("diaries/a.pages") == #"["a1","a2"]"#)
        #expect(try await store.text("diaries/b.pages") == #"["b1","b2"]"#)
    }

    @Test(
        "a state that cannot be decoded fails calls and streams, and stays in the store", arguments: TestLink.allCases)
    func undecodable(link: TestLink) async throws {
        try await store.put(#"{"not":"a list"}"#, "diary.pages")
        try await withDiary(link: link) { (diary, _, server) async throws in
            let failure = await server.expose(Diary(actorSystem: server.actorSystem), as: "diary")
            #expect(failure?.code == .internal)
            #expect(failure?.message.contains("'pages' of actor 'diary' cannot be decoded") == true)
            for _ in 0..<2 {
                let error = await #expect(throws: TrebuchetError.self) { try await diary.write("b") }
                #expect(error?.code == .internal)
                #expect(error?.message.contains("'pages' of actor 'diary' cannot be decoded") == true)
            }
            let stream = await diary.observePages()
            for await pages in stream { Issue.record("\(pages) came") }
            guard case .failed = stream.outcome else {
                Issue.record("\(String(describing: stream.outcome))")
                return
            }
            #expect(try await store.text("diary.pages") == #"{"not":"a list"}"#)
            // Once it is repaired, the next call succeeds.
            try await store.put(#"["mended"]"#, "diary.pages")
            #expect(try await diary.write("b") == 2)
            #expect(await server.expose(Diary(actorSystem: server.actorSystem), as: "diary") == nil)
        }
    }

    @Test("an undecodable state appears in the log, and clients receive a number", arguments: [false, true])
    func undisclosed(showsErrorText: Bool) async throws {
        try await store.put(#"{"password":"pa55word"}"#, "diary.pages")
        let journal = Journal()
        let server = TrebuchetServer(
            transport: .webSocket(port: 0), store: store, showsErrorText: showsErrorText,
            log: ConsoleLog { journal.record($0) })
        await server.expose(Diary(actorSystem: server.actorSystem), as: "diary")
        let client = TrebuchetClient(transport: .local(server))
        try await client.connect()
        let before = journal.entries.count
        let error = await #expect(throws: TrebuchetError.self) {
            try await client.resolve(Diary.self, id: "diary").read()
        }
        #expect(error?.message.contains("pa55word") == showsErrorText, "\(error?.message ?? "")")
        #expect(error?.message.contains("'pages' of actor 'diary'") == true)
        if !showsErrorText {
            let lines = journal.entries.dropFirst(before).filter { !$0.contains("reactor-") }
            #expect(lines.count == 1)
            for part in ["pa55word", "'pages' of actor 'diary'", "states/diary.pages"] {
                #expect(lines.first?.contains(part) == true, "\(lines)")
            }
            let number = try #require(lines.first?.split(separator: ":").first)
            #expect(error?.message.contains(number) == true, "\(number): \(error?.message ?? "")")
        }
        await client.close()
        await server.shutdown(drain: .zero)
    }

    @Test("a store that cannot be read fails calls until reads succeed")
    func unreadable() async throws {
        try await store.put(#"["kept"]"#, "diary.pages")
        store.failReads(StateStoreError(.damaged, "data.db is damaged"))
        try await withDiary { (diary, _, _) async throws in
            let error = await #expect(throws: TrebuchetError.self) { try await diary.read() }
            #expect(error?.code == .unavailable)
            #expect(error?.message.contains("data.db is damaged") == true)
            store.failReads(nil)
            #expect(try await diary.read() == ["kept"])
        }
    }

    // MARK: Names

    @Test("a replaced actor writes its state before its successor loads it")
    func replaced() async throws {
        try await withDiary(reactors: 2) { (diary, _, server) async throws in
            _ = try await diary.write("a")
            await server.expose(Diary(actorSystem: server.actorSystem), as: "diary")
            #expect(try await diary.write("b") == 2)
            await server.unexpose("diary")
            await #expect(throws: TrebuchetError.self) { try await diary.write("c") }
            #expect(try await store.text("diary.pages") == #"["a","b"]"#)
        }
    }

    @Test("an actor that is unexposed during store failures is written before its name is loaded again")
    func retiredWhileFailing() async throws {
        try await withDiary(reactors: 2) { (diary, _, server) async throws in
            store.failWrites(StateStoreError(.full, "full"))
            let own = try Diary.resolve(id: TrebuchetActorID("diary"), using: server.actorSystem)
            _ = try await own.write("a")
            let done = Journal()
            let unexposing = Task {
                await server.unexpose("diary")
                done.record("unexposed")
            }
            #expect(
                await eventually {
                    let error = await #expect(throws: TrebuchetError.self) { try await diary.read() }
                    return error?.code == .actorNotFound
                })
            let next = Diary(actorSystem: server.actorSystem)
            let exposing = Task {
                await server.expose(next, as: "diary")
                done.record("exposed")
            }
            await store.journal.wait(for: "write 3")
            #expect(done.entries == [])
            store.failWrites(nil)
            await unexposing.value
            await exposing.value
            #expect(try await diary.write("b") == 2)
            #expect(try await store.text("diary.pages") == #"["a","b"]"#)
        }
    }

    @Test("changes made in the server's process are persisted too, from before the exposure on")
    func ownProcess() async throws {
        try await withTestServer(store: store) { server in
            let own = Diary(actorSystem: server.actorSystem)
            _ = try await own.write("early")
            await server.expose(own, as: "diary")
            _ = try await own.write("late")
            await server.expose(own, as: "diary")
        } body: { (client, _) async throws in
            #expect(try await client.resolve(Diary.self, id: "diary").read() == ["early", "late"])
        }
        #expect(try await store.text("diary.pages") == #"["early","late"]"#, "shutdown writes the remaining changes")
    }

    @Test("without a store, persisted states live in memory")
    func noStore() async throws {
        try await withTestServer { server in
            await server.expose(Diary(actorSystem: server.actorSystem), as: "diary")
        } body: { (client, _) async throws in
            #expect(try await client.resolve(Diary.self, id: "diary").write("a") == 1)
        }
    }
}

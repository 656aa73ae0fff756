import Networking
import Platform
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Stores and returns notes.
@Trebuchet
distributed actor Herald {
    struct News: Codable, Sendable, Equatable {
        var number: Int
        var padding = ""
    }

    @StreamedEvents(persisted: true) var news: News
    @StreamedEvents(buffer: 4, persisted: true, keeping: 20) var few: Int
    @StreamedEvents(persisted: true) var readings: Double
    @StreamedState(persisted: true) var tellCount: Int = 0
    @StreamedState(delivery: .every(), persisted: true) var each: [Int] = []

    distributed func tell(_ times: Int = 1, padding: Int = 0) -> Int {
        for _ in 0..<times {
            tellCount += 1
            each.append(tellCount)
            $news.send(News(number: tellCount, padding: String(repeating: "x", count: padding)))
        }
        return tellCount
    }
    distributed func count(_ times: Int) { for number in 1...times { $few.send(number) } }
    distributed func read(_ value: Double) { $readings.send(value == 0 ? .nan : value) }
    distributed func readLater(_ value: Double) async {
        $readings.send(value == 0 ? .nan : value)
        await Task.yield()
    }
    distributed func total() -> Int { tellCount }
}

/// `@StreamedEvents(persisted: true)` at a server whose store the test controls.
@Suite(.timeLimit(.minutes(5))) struct PersistedEventsTests {
    let store = GatedStore()

    func withHerald(
        link: TestLink = .webSocket, reactors: Int? = nil, limits: ServerLimits = ServerLimits(),
        isPersisted: Bool = true,
        _ body: (Herald, TrebuchetClient, TrebuchetServer) async throws -> Void
    ) async throws {
        try await withTestServer(link: link, reactors: reactors, limits: limits, store: isPersisted ? store : nil) {
            server in
            await server.expose(Herald(actorSystem: server.actorSystem), as: "herald")
            await server.expose(Calculator(actorSystem: server.actorSystem), as: "calculator")
        } body: { client, server in
            try await body(client.resolve(Herald.self, id: "herald"), client, server)
        }
    }

    private func roundTrips(_ client: TrebuchetClient) async throws {
        let calculator = try client.resolve(Calculator.self, id: "calculator")
        for number in 0..<3 { #expect(try await calculator.same(number) == number) }
    }

    private func begun(_ server: TrebuchetServer, _ count: Int = 1, _ stream: String = "observeNews") async {
        #expect(await eventually { await server.subscriberCount(of: "herald", stream) == count })
    }

    private func key(_ property: String) -> StateKey { StateKey("events", "herald.\(property)") }

    /// The persisted events as JSON.
    private func storedEntries(_ property: String) async throws -> [String] {
        try await store.readLog(key(property))?.entries.map { String(decoding: $0.bytes, as: UTF8.self) } ?? []
    }

    /// The writes of one property, one for each transaction.
    private func operations(_ property: String) -> [StateWrite.Operation] {
        store.writes.filter { $0.key == key(property) }.map(\.operation)
    }

    // MARK: Writes before publication

    @Test("events and responses are sent after both are written", arguments: TestLink.allCases)
    func afterWrite(link: TestLink) async throws {
        try await withHerald(link: link) { (herald, client, server) async throws in
            let stream = await herald.observeNews()
            await begun(server)
            _ = try await herald.total()
            let shown = Mutex<[Int]>([])
            let reader = Task {
                for try await news in stream {
                    shown.withLock { $0.append(news.number) }
                    if news.number == 2 { break }
                }
            }
            let writes = store.journal.entries.count
            store.close()
            let isAnswered = Mutex(false)
            let call = Task {
                _ = try await herald.tell(2)
                isAnswered.withLock { $0 = true }
            }
            await store.journal.wait(for: "write \(writes + 1)")
            try await roundTrips(client)
            #expect(!isAnswered.withLock { $0 })
            #expect(shown.withLock { $0 } == [])
            store.open()
            try await call.value
            try await reader.value
            #expect(shown.withLock { $0 } == [1, 2])
        }
    }

    @Test("the events and the state changes of a call are one transaction")
    func sameTransaction() async throws {
        try await withHerald(reactors: 1) { (herald, _, server) async throws in
            #expect(try await herald.tell() == 1)
            let (before, count) = (store.writes.count, store.journal.entries.count)
            #expect(try await herald.tell(3) == 4)
            #expect(store.journal.entries.count == count + 1)
            let written = store.writes.dropFirst(before)
            #expect(written.count { $0.key == key("news") } == 3)
            #expect(written.contains { $0.key == StateKey("states", "herald.tellCount") })
            store.failWrites(StateStoreError(.full, "full"))
            let error = await #expect(throws: TrebuchetError.self) { try await herald.tell() }
            #expect(error?.code == .unknownOutcome)
            #expect(try await storedEntries("news").count == 4)
            #expect(try await store.text("herald.tellCount") == "4")
            store.failWrites(nil)
            #expect(try await herald.tell() == 6)
            #expect(try await storedEntries("news").last?.contains(#""number":6"#) == true)
            #expect(try await storedEntries("news").count == 6)
            #expect(try await store.text("herald.tellCount") == "6")
        }
    }

    @Test("events of a failed write are sent and persisted once a write succeeds, each once")
    func failingWrite() async throws {
        try await withHerald(reactors: 1) { (herald, _, server) async throws in
            var early = await herald.observeNews().makeAsyncIterator()
            await begun(server)
            _ = try await herald.tell()
            #expect(try await early.next()?.number == 1)
            store.failWrites(StateStoreError(.full, "full"))
            for _ in 0..<3 { await #expect(throws: TrebuchetError.self) { try await herald.tell() } }
            // A new subscriber also receives the unwritten events, once they are written.
            let other = TrebuchetClient(transport: .local(server))
            try await other.connect()
            var late = await (try other.resolve(Herald.self, id: "herald")).observeNews().makeAsyncIterator()
            await begun(server, 2)
            store.failWrites(nil)
            #expect(try await herald.tell() == 5)
            for number in 2...5 {
                #expect(try await early.next()?.number == number)
                #expect(try await late.next()?.number == number)
            }
            #expect(try await storedEntries("news").count == 5)
            await other.close()
        }
    }

    @Test("the number of an unwritten event is not published", arguments: [1, 2])
    func position(reactors: Int) async throws {
        try await withHerald(reactors: reactors) { (herald, client, server) async throws in
            _ = try await herald.tell(3)
            let count = store.journal.entries.count
            store.close()
            let call = Task { try await herald.tell() }
            await store.journal.wait(for: "write \(count + 1)")
            let stream = await herald.observeNews()
            #expect(await eventually { stream.bookmark != nil })
            #expect(stream.bookmark?.sequence == 3)
            store.open()
            _ = try await call.value
            var news = stream.makeAsyncIterator()
            #expect(try await news.next()?.number == 4)
            #expect(stream.bookmark?.sequence == 4)
        }
    }

    // MARK: Persisted events

    @Test("the number of persisted events is bounded, and old ones are removed from time to time")
    func bounded() async throws {
        try await withHerald(reactors: 1) { (herald, _, _) async throws in
            for _ in 0..<200 { try await herald.count(2) }
            let log = try #require(try await store.readLog(key("few")))
            #expect(20...36 ~= log.entries.count)
            #expect(log.lastVersion == 400)
            #expect(log.snapshot.bytes.isEmpty)
            let snapshots = operations("few").count { if case .snapshot = $0 { true } else { false } }
            #expect(2...30 ~= snapshots)
        }
    }

    @Test("the bytes of persisted events are bounded too")
    func boundedBytes() async throws {
        var limits = ServerLimits()
        limits.persistence.eventBytes = 10_000
        try await withHerald(reactors: 1, limits: limits) { (herald, _, _) async throws in
            for _ in 0..<60 { _ = try await herald.tell(1, padding: 1_000) }
            let entries = try #require(try await store.readLog(key("news"))).entries
            #expect(entries.reduce(0) { $0 + $1.bytes.count } <= 13_500)
            #expect(entries.count >= 8)
        }
    }

    @Test("a turn with more events than the limit persists the newest, and its subscriber gets an overflow error")
    func manyAtOnce() async throws {
        try await withHerald(reactors: 1) { (herald, _, server) async throws in
            var news = await herald.observeNews().makeAsyncIterator()
            await begun(server)
            #expect(try await herald.tell(900) == 900)
            for number in 1...900 { #expect(try await news.next()?.number == number) }
            #expect(try await herald.tell(3_000) == 3_900)
            #expect(try await storedEntries("news").count == 1_000)
            #expect(try await storedEntries("news").first?.contains(#""number":2901"#) == true)
            let error = await #expect(throws: TrebuchetError.self) { try await news.next() }
            #expect(error?.code == .overflow)
        }
    }

    @Test(
        "an event that cannot be encoded fails its own call; the others are persisted and sent",
        arguments: [false, true])
    func unencodable(later: Bool) async throws {
        try await withHerald(reactors: 1) { (herald, _, server) async throws in
            var readings = await herald.observeReadings().makeAsyncIterator()
            await begun(server, 1, "observeReadings")
            try await herald.read(1)
            #expect(try await readings.next() == 1)
            let place = await herald.observeReadings()
            await begun(server, 2, "observeReadings")
            let error = await #expect(throws: TrebuchetError.self) {
                if later { try await herald.readLater(0) } else { try await herald.read(0) }
            }
            #expect(error?.code == .internal)
            #expect(error?.message.contains("an event of type Double cannot be encoded") == true)
            await #expect(throws: TrebuchetError.self) { try await readings.next() }
            try await herald.read(2)
            #expect(try await storedEntries("readings") == ["1", "2"])
            var since = await herald.observeReadings(since: place.bookmark).makeAsyncIterator()
            #expect(try await since.next() == 2)
        }
    }

    @Test("an event over the limit fails its own call")
    func tooLarge() async throws {
        var limits = ServerLimits()
        limits.persistence.eventBytes = 1_000
        try await withHerald(reactors: 1, limits: limits) { (herald, _, _) async throws in
            let error = await #expect(throws: TrebuchetError.self) { try await herald.tell(1, padding: 2_000) }
            #expect(error?.code == .internal)
            #expect(
                error?.message.contains("the limit for persisted events is 1000") == true, "\(error?.message ?? "")")
            #expect(try await herald.tell() == 2)
            let storedEntries = try await storedEntries("news")
            #expect(storedEntries.count == 1 && storedEntries[0].contains(#""number":2"#), "\(storedEntries)")
        }
    }

    @Test("a store that cannot be read fails calls until reads succeed")
    func unreadable() async throws {
        store.failReads(StateStoreError(.damaged, "data.db is damaged"))
        try await withHerald { (herald, _, _) async throws in
            let error = await #expect(throws: TrebuchetError.self) { try await herald.total() }
            #expect(error?.code == .unavailable)
            store.failReads(nil)
            #expect(try await herald.tell() == 1)
        }
    }

    @Test("without a store nothing is persisted, and nothing is encoded without subscribers")
    func noStore() async throws {
        try await withHerald(isPersisted: false) { (herald, _, server) async throws in
            _ = try await herald.tell(10)
            #expect(await server.encodeCount(of: "herald", "observeNews") == 0)
            var news = await herald.observeNews().makeAsyncIterator()
            await begun(server)
            _ = try await herald.tell()
            #expect(try await news.next()?.number == 11)
        }
        #expect(store.writes.isEmpty)
    }

    // MARK: In the server's process

    @Test("a local reader receives each event at once, and after a bookmark only written events")
    func local() async throws {
        let own = Mutex<Herald?>(nil)
        try await withTestServer(reactors: 1, store: store) { server in
            let herald = Herald(actorSystem: server.actorSystem)
            own.withLock { $0 = herald }
            await server.expose(herald, as: "herald")
        } body: { (_, server) async throws in
            let herald = try #require(own.withLock { $0 })
            _ = try await herald.tell(2)
            #expect(await eventually { await herald.observeNews(since: nil).bookmark?.sequence == 2 })
            let behind = await herald.observeNews(since: nil)
            let place = try #require(behind.bookmark)
            #expect(place.sequence == 2)
            var now = await herald.observeNews().makeAsyncIterator()
            let count = store.journal.entries.count
            store.close()
            _ = try await herald.tell()
            #expect(try await now.next()?.number == 3)
            await store.journal.wait(for: "write \(count + 1)")
            store.open()
            var reader = behind.makeAsyncIterator()
            #expect(try await reader.next()?.number == 3)
            #expect(behind.bookmark == EventBookmark(epoch: place.epoch, sequence: 3))
            var all = await herald.observeNews(since: EventBookmark(epoch: place.epoch, sequence: 0))
                .makeAsyncIterator()
            for number in 1...3 { #expect(try await all.next()?.number == number) }
            var other = await herald.observeNews(since: EventBookmark(epoch: "other", sequence: 0)).makeAsyncIterator()
            let error = await #expect(throws: TrebuchetError.self) { try await other.next() }
            #expect(error?.code == .overflow)
        }
    }

    @Test("an event of a replaced actor is not mistaken for its successor's")
    func replaced() async throws {
        try await withHerald(reactors: 1) { (herald, _, server) async throws in
            let old = try Herald.resolve(id: TrebuchetActorID("herald"), using: server.actorSystem)
            var news = await herald.observeNews().makeAsyncIterator()
            await begun(server)
            _ = try await herald.tell()
            #expect(try await news.next()?.number == 1)
            await server.expose(Herald(actorSystem: server.actorSystem), as: "herald")
            _ = try await old.tell()
            let error = await #expect(throws: TrebuchetError.self) { try await news.next() }
            #expect(error?.code == .overflow)
            #expect(try await herald.tell() == 2)
            #expect(try await storedEntries("news").count == 2)
        }
    }

    @Test("an actor that is exposed again without events in between continues its stream")
    func exposedAgain() async throws {
        try await withHerald(reactors: 1) { (herald, _, server) async throws in
            let own = try Herald.resolve(id: TrebuchetActorID("herald"), using: server.actorSystem)
            let stream = await herald.observeNews()
            await begun(server)
            _ = try await herald.tell(3)
            await server.unexpose("herald")
            await server.expose(own, as: "herald")
            _ = try await herald.tell()
            let place = try #require(stream.bookmark)
            var all = await herald.observeNews(since: EventBookmark(epoch: place.epoch, sequence: 0))
                .makeAsyncIterator()
            for number in 1...4 { #expect(try await all.next()?.number == number) }
        }
    }
}

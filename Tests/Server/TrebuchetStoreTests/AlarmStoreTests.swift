import Foundation
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetActors
import TrebuchetStore
import TrebuchetTesting

/// Counts its alarms.
@Trebuchet
private distributed actor Chime {
    @StreamedState(persisted: true) var rings: Int = 0

    distributed func start(seconds: Double) throws { try alarms.set("ring", at: Date(timeIntervalSinceNow: seconds)) }
    distributed func count() -> Int { rings }

    func alarm(_ alarm: Alarm) { rings += 1 }
}

/// A store that counts the rows that are read as pages.
private final class CountingStore: StateStore {
    private let store: SQLiteStore
    let rows = Mutex(0)

    init(_ store: SQLiteStore) { self.store = store }

    func get(_ keys: [StateKey]) async throws(StateStoreError) -> [StateKey: [UInt8]] { try await store.get(keys) }

    func list(
        _ namespace: String, prefix: String, after: String?, limit: Int
    ) async throws(StateStoreError) -> [StateEntry] {
        let page = try await store.list(namespace, prefix: prefix, after: after, limit: limit)
        rows.withLock { $0 += page.count }
        return page
    }

    func readLog(_ key: StateKey) async throws(StateStoreError) -> StoredLog? { try await store.readLog(key) }
    func write(_ writes: [StateWrite]) async throws(StateStoreError) { try await store.write(writes) }
}

/// Alarms in a SQLite file.
@Suite(.timeLimit(.minutes(5))) struct AlarmStoreTests {
    private func server(_ store: any StateStore, _ clock: TestTime) -> TrebuchetServer {
        let server = TrebuchetServer(transport: .webSocket(port: 0), clock: clock, store: store, log: nil)
        server.expose(Chime.self, as: "chimes/*") { _ in Chime(actorSystem: server.actorSystem) }
        return server
    }

    @Test("100,000 alarms that wait are not read and activate no actor; the one that is due is delivered")
    func waiting() async throws {
        let folder = try TemporaryFolder()
        let file = try SQLiteStore(path: folder.file())
        let due = Int64(Date().timeIntervalSince1970 * 1_000) + 100_000_000
        for start in stride(from: 0, to: 100_000, by: 5_000) {
            try await file.write(
                (start..<start + 5_000).flatMap { number -> [StateWrite] in
                    var table = AlarmTable()
                    table.set(.init(name: "ring", due: due + Int64(number)))
                    return [
                        .put(table.bytes, AlarmNamespace.key("chimes/\(number)")),
                        .put([], AlarmNamespace.row(due + Int64(number), "chimes/\(number)")),
                    ]
                })
        }
        let store = CountingStore(file)
        let clock = TestTime()
        let server = server(store, clock)
        try await server.start()
        let client = TrebuchetClient(transport: .local(server))
        try await client.connect()
        let chime = try client.resolve(Chime.self, id: "chimes/new")
        try await chime.start(seconds: 1_000)
        await clock.advance(by: .seconds(1_001))
        #expect(try await eventually { try await chime.count() == 1 })
        #expect(server.actorCount == 1)
        #expect(store.rows.withLock { $0 } <= 3 * 256)
        let usage = try await file.usage(of: "alarmTimes", prefix: "")
        #expect(usage.entries == 100_000)
        await client.close()
        await server.shutdown(drain: .zero)
        await file.close()
    }

    @Test("an alarm is delivered by the next server of the file, once")
    func restart() async throws {
        let folder = try TemporaryFolder()
        let clock = TestTime()
        for round in 0..<3 {
            let file = try SQLiteStore(path: folder.file())
            let server = server(file, clock)
            try await server.start()
            let client = TrebuchetClient(transport: .local(server))
            try await client.connect()
            let chime = try client.resolve(Chime.self, id: "chimes/1")
            if round == 0 { try await chime.start(seconds: 500) } else { await clock.advance(by: .seconds(600)) }
            if round == 1 { #expect(try await eventually { try await file.list("alarmTimes").isEmpty }) }
            #expect(try await chime.count() == min(round, 1))
            await client.close()
            await server.cut()
            await file.close()
        }
    }
}

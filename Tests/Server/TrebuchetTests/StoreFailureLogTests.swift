import Synchronization
import TestSupport
import Testing
import TrebuchetTesting

@testable import Trebuchet

/// Log lines about stores that do not accept writes.
@Suite struct StoreFailureLogTests {
    @Test("a failure is logged once for all writers, and its end when the last of them has recovered")
    func severalWriters() {
        let lines = Mutex<[String]>([])
        let now = Mutex<UInt64>(0)
        let log = StoreFailureLog({ line in lines.withLock { $0.append(line) } }, clock: { now.withLock { $0 } })
        let writers = [log.reporter("the store"), log.reporter("the store")]
        let engine = log.reporter("the engine")
        for writer in writers { writer("data.db: the disk is full") }
        engine("not reachable")
        now.withLock { $0 = 12_500_000_000 }
        writers[0](nil)
        #expect(lines.withLock { $0.count } == 2)
        writers[1](nil)
        #expect(
            lines.withLock { $0 } == [
                "the store does not accept writes; calls that change persisted states fail until it does: "
                    + "data.db: the disk is full",
                "the engine does not accept writes; calls that change persisted states fail until it does: not reachable",
                "the store accepts writes again, after 12 s",
            ])
    }

    @Test("a server without a log level states that its store does not accept writes, and when it does again")
    func server() async throws {
        let (lines, store) = (Journal(), GatedStore())
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 1, store: store,
            log: ConsoleLog { lines.record($0) })
        await server.expose(Diary(actorSystem: server.actorSystem), as: "diary")
        let address = try await server.start()
        let client = TrebuchetClient(transport: .webSocket(host: address.host, port: address.port))
        try await client.connect()
        let diary = try client.resolve(Diary.self, id: "diary")
        store.failWrites(StateStoreError(.full, "data.db: the disk is full"))
        for _ in 0..<2 { await #expect(throws: TrebuchetError.self) { try await diary.write("a") } }
        store.failWrites(nil)
        #expect(try await diary.write("b") == 3)
        await client.close()
        await server.shutdown(drain: .zero)
        let found = lines.entries.filter { $0.hasPrefix("the store") }
        #expect(found.count == 2)
        #expect(found.first?.contains("data.db: the disk is full") == true)
        #expect(found.last?.hasPrefix("the store accepts writes again") == true)
    }
}

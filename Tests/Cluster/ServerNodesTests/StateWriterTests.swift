import Networking
import Synchronization
import TestSupport
import Testing

@testable import TrebuchetActors

/// Writes to stores with one log for each actor.
@Suite(.timeLimit(.minutes(5))) struct StateWriterTests {
    /// Accepts writes once the test has opened it.
    private final class Logs: PerActorStore {
        private let contents = Mutex<(isOpen: Bool, writes: [[StateWrite]])>((false, []))

        var writes: [[StateWrite]] { contents.withLock { $0.writes } }
        func open() { contents.withLock { $0.isOpen = true } }

        func get(_ keys: [StateKey]) async throws(StateStoreError) -> [StateKey: [UInt8]] { [:] }
        func list(
            _ namespace: String, prefix: String, after: String?, limit: Int
        ) async throws(StateStoreError) -> [StateEntry] { [] }
        func readLog(_ key: StateKey) async throws(StateStoreError) -> StoredLog? { nil }
        func ownership(of actor: String) -> UInt64 { 1 }
        func readLog(at key: StateKey, after seen: ActorLogPosition?) async throws(StateStoreError)
            -> ActorLogReadResult
        {
            ActorLogReadResult(.complete(nil), ActorLogPosition(fence: 0, offset: 0))
        }
        func remove(_ actor: String, ownedUnder ownership: UInt64) async throws(StateStoreError) {}
        func calls(of actor: String) async throws(StateStoreError) -> IdempotencyIndex { IdempotencyIndex() }
        func values(of actor: String, in namespace: String) async throws(StateStoreError) -> [String: [UInt8]] { [:] }
        func write(_ writes: [StateWrite]) async throws(StateStoreError) {
            _ = await eventually { self.contents.withLock { $0.isOpen } }
            contents.withLock { $0.writes.append(writes) }
        }
    }

    @Test("expired responses of an actor are removed in batches, and the queue of removals is bounded")
    func releasedRecords() async throws {
        let logs = Logs()
        let reactor = try Reactor(name: "writer")
        let writer = StateWriter(
            logs, StoreOwnership(logs, for: "states"), ErrorDisclosure(showsText: false) { _ in }, stateSize: 1 << 20,
            eventBytes: 1 << 20, responseLifetime: .zero, reactor: reactor)
        let most = StateWriter.maximumOverdueWrites
        for round in 0..<10 {
            await reactor.perform {
                for number in 0..<most / 4 {
                    let actor = number.isMultiple(of: 2) ? "a" : "b"
                    writer.scheduleDeletion(
                        IdempotencyNamespace.key("1.1.1", UInt64(round * most + number), of: actor), nil)
                }
            }
            #expect(await reactor.perform { writer.expiryCount } <= most)
        }
        logs.open()
        #expect(await eventually { await reactor.perform { writer.expiryCount } == 0 })
        for write in logs.writes { #expect(Set(write.map(\.key.partition)).count == 1) }
        // The last removals are still in progress.
        #expect(await eventually { logs.writes.joined().count >= most })
        #expect(logs.writes.count <= 2 * (most / 1_000 + 2))
    }
}

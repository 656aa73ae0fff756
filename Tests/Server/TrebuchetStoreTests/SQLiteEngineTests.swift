import Foundation
import Testing
import Trebuchet
import TrebuchetCluster
import TrebuchetStore

/// Data that `SQLiteEngine` persists beyond its process. EngineConformanceTests covers the behaviour common to all engines.
struct SQLiteEngineTests {
    @Test("fences, entries, snapshots and replies survive a restart; leases do not")
    func restart() async throws {
        let store = MemoryStore()
        let (node, log) = (try ClusterNode(name: "a"), ClusterLog("todos"))
        var engine = SQLiteEngine(over: store)
        let lease = try #require(
            try await engine.acquire(log.slot, for: node, duration: .seconds(60)).lease)
        #expect(lease.fence == 1)
        for number in 1...40 as ClosedRange<UInt64> {
            let call = number == 40 ? LogAppend.Call(id: "c", reply: [7]) : nil
            let append = LogAppend([UInt8(number)], expectedHead: number - 1, call: call)
            #expect(try await engine.append(append, to: log, lease: lease) == .accepted(number))
        }
        #expect(try await engine.storeSnapshot([9], at: 30, of: log, lease: lease, keepingLast: 5) == .stored)
        await engine.close()

        engine = SQLiteEngine(over: store)
        #expect(try await engine.owner(of: log.slot) == nil)
        // The previous owner cannot write any more, whether or not the slot has an owner now.
        #expect(try await engine.append(LogAppend([0], expectedHead: 40), to: log, lease: lease) == .fenced(1))
        let next = try ClusterNode(name: "a")
        let later = try #require(
            try await engine.acquire(log.slot, for: next, duration: .seconds(60)).lease)
        #expect(later.fence == 2)
        let repeated = LogAppend([0], expectedHead: 40, call: .init(id: "c", reply: [8]))
        #expect(try await engine.append(repeated, to: log, lease: later) == .repeated([7]))
        let whole = try await engine.read(log, after: nil)
        #expect(whole.start == .snapshot(ClusterLogSnapshot(LogPosition(fence: 1, offset: 30), [9])))
        #expect(whole.entries.map(\.payload) == (31...40).map { [UInt8($0)] })
        let rest = try await engine.read(log, after: LogPosition(fence: 1, offset: 26))
        #expect(rest.start == .resumed && rest.entries.count == 14)
        #expect(try await engine.read(log, after: LogPosition(fence: 1, offset: 25)).start == whole.start)
        #expect(try await engine.append(LogAppend([41], expectedHead: 40), to: log, lease: later) == .accepted(41))
        #expect(try await engine.read(log, after: LogPosition(fence: 1, offset: 41)).start == whole.start)
        #expect(try await engine.read(log, after: LogPosition(fence: 2, offset: 41)).start == .resumed)
    }

    @Test("a slot whose fence could not be stored has no owner")
    func unwritable() async throws {
        let (node, slot) = (try ClusterNode(name: "a"), ClusterSlot.all[3])
        let store = UnwritableStore()
        let engine = SQLiteEngine(over: store)
        await #expect(throws: ClusterEngineError.self) {
            try await engine.acquire(slot, for: node, duration: .seconds(60))
        }
        #expect(try await engine.owner(of: slot) == nil)
        #expect(try await engine.nodes().isEmpty)
    }
}

/// An empty store whose writes fail.
private struct UnwritableStore: StateStore {
    func get(_ keys: [StateKey]) async throws(StateStoreError) -> [StateKey: [UInt8]] { [:] }
    func list(
        _ namespace: String, prefix: String, after: String?, limit: Int
    ) async throws(StateStoreError) -> [StateEntry] { [] }
    func readLog(_ key: StateKey) async throws(StateStoreError) -> StoredLog? { nil }
    func write(_ writes: [StateWrite]) async throws(StateStoreError) { throw StateStoreError(.full, "no room") }
}

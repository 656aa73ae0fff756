import Foundation
import TestSupport
import Testing
import TrebuchetActors
import TrebuchetCluster
import TrebuchetRedis

@testable import Trebuchet
@testable import TrebuchetNodes

/// A server restarted with an older file while the leases of a node are valid, as after a crash with `appendfsync everysec`.
@Suite(.hasRedis, .timeLimit(.minutes(5)))
struct RestoredServerTests {
    private let key = StateKey("states", "a.count", partition: "a")
    private let log = ClusterLog("a")

    private func append(_ number: UInt64, _ store: EngineStore) async throws(StateStoreError) {
        try await store.write([
            .append(LogEntry(version: number, baseVersion: number - 1, bytes: [UInt8(number)]), key)
        ])
    }

    private func rows(_ engine: RedisEngine) async throws -> [String] {
        let page = try await engine.rows(
            of: SlotAlarmRows.table(of: log.slot), prefix: "", after: nil, limit: 100)
        return page.rows.compactMap { SlotAlarmRows.row(named: $0.name).map { "\($0.time) \($0.actor)" } }
    }

    @Test(
        "the row of an alarm is before its log entry in the file, and an owner that writes entries again writes it too")
    func alarms() async throws {
        let always = ["--appendfsync", "always"]
        let server = try await RedisServer(options: always)
        let engine = try RedisEngine(url: server.url)
        let lease = try #require(
            try await engine.acquire(
                log.slot, for: try ClusterNode(name: "n"), duration: .seconds(3_600)
            ).lease)
        let store = EngineStore(engine) { $0 == lease.slot ? lease : nil }
        func set(_ time: Int64, deleting earlier: Int64?) async throws {
            var table = AlarmTable()
            table.set(.init(name: "ring", due: time))
            var writes: [StateWrite] = [
                .put(table.bytes, AlarmNamespace.key("a")), .put([], AlarmNamespace.row(time, "a")),
            ]
            if let earlier { writes.append(.delete(AlarmNamespace.row(earlier, "a"))) }
            try await store.write(writes)
        }
        try await set(50, deleting: nil)
        let (files, copy) = (
            server.folder.appending(path: "appendonlydir"), server.folder.appending(path: "earlier")
        )
        try FileManager.default.copyItem(at: files, to: copy)
        try await set(30, deleting: 50)
        #expect(try await eventually { try await rows(engine) == ["30 a"] })
        await server.stop()
        try FileManager.default.removeItem(at: files)
        try FileManager.default.moveItem(at: copy, to: files)
        let again = try await RedisServer(port: server.port, folder: server.folder, options: always)
        #expect(await eventually { (try? await rows(engine)) == ["50 a"] })
        #expect(await eventually { await store.checkEnds() == [] })
        // The later row again, and the earlier one, which activates the actor once.
        #expect(try await rows(engine) == ["30 a", "50 a"])
        let next = EngineStore(engine) { _ in lease }
        let bytes = try #require(try await next.get(AlarmNamespace.key("a")))
        #expect(try AlarmTable(bytes).nextTime == 30)
        await engine.close()
        await again.stop()
    }

    @Test(
        "no acknowledged write is lost: the next write, or the new connection, writes it again",
        arguments: [true, false])
    func older(writes: Bool) async throws {
        // With `everysec` the copy may lack the newest entries.
        let always = ["--appendfsync", "always"]
        let server = try await RedisServer(options: always)
        let engine = try RedisEngine(url: server.url)
        let lease = try #require(
            try await engine.acquire(
                log.slot, for: try ClusterNode(name: "n"), duration: .seconds(3_600)
            ).lease)
        let lines = Journal()
        let store = EngineStore(engine) { $0 == lease.slot ? lease : nil }
        store.report { lines.record($0) }
        try await store.write([.snapshot(LogSnapshot(epoch: "first", version: 1, bytes: [1]), key)])
        for number in 2...5 as ClosedRange<UInt64> { try await append(number, store) }
        let (files, copy) = (
            server.folder.appending(path: "appendonlydir"), server.folder.appending(path: "earlier")
        )
        try FileManager.default.copyItem(at: files, to: copy)
        for number in 6...8 as ClosedRange<UInt64> { try await append(number, store) }
        let connections = engine.connectionCount
        await server.stop()
        try FileManager.default.removeItem(at: files)
        try FileManager.default.moveItem(at: copy, to: files)
        let again = try await RedisServer(port: server.port, folder: server.folder, options: always)
        let other = try RedisEngine(url: again.url)
        #expect(try await other.read(log, after: nil).head == LogPosition(fence: lease.fence, offset: 5))
        if writes {
            // Writes until the engine is connected again.
            #expect(await eventually { (try? await append(9, store)) != nil })
        } else {
            // A command makes the engine connect.
            #expect(
                await eventually { (try? await engine.nodes()) != nil && engine.connectionCount > connections })
            #expect(await store.checkEnds() == [])
        }
        let last: UInt64 = writes ? 9 : 8
        #expect(try await other.read(log, after: nil).head == LogPosition(fence: lease.fence, offset: last))
        let found = try #require(try await EngineStore(other) { _ in lease }.readLog(key))
        #expect(found.snapshot.epoch == "first" && found.entries.map(\.version) == Array(2...last))
        #expect(lines.entries.count == 1 && lines.entries[0].contains("newest 3 entries of the log of actor 'a'"))
        await engine.close()
        await other.close()
        await again.stop()
    }
}

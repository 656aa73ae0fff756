import NodeSupport
import Synchronization
import TestSupport
import Testing
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// The rows of alarms in the coordination store, at every step between a row and its log.
@Suite(.timeLimit(.minutes(5))) struct AlarmRowStoreTests {
    private let engine = MemoryEngine()
    private let actor = "chimes/1"
    private var slot: ClusterSlot { ClusterSlot(of: actor) }

    /// The next owner of all slots of the test.
    private func owner(
        _ engineRoute: (any ClusterEngine)? = nil, didLose: @escaping @Sendable () -> Void = {}
    ) async throws -> EngineStore {
        if let lease = try await engine.owner(of: slot)?.lease { _ = try await engine.releaseLease(lease) }
        let lease = try #require(
            try await engine.acquire(slot, for: ClusterNode(name: "n"), duration: .seconds(3_600)).lease)
        let store = EngineStore(engineRoute ?? engine, didLose: { _, _ in didLose() }) {
            $0 == lease.slot ? lease : nil
        }
        store.alarmRows.didAcquire(slot)
        return store
    }

    /// Writes an alarm at a time, in place of those at others; nil for none.
    private func write(_ time: Int64?, deleting times: [Int64] = [], _ store: EngineStore) async throws {
        var writes = times.map { StateWrite.delete(AlarmNamespace.row($0, actor)) }
        guard let time else {
            writes.append(.delete(AlarmNamespace.key(actor)))
            return try await store.write(writes)
        }
        var table = AlarmTable()
        table.set(.init(name: "ring", due: time))
        writes += [.put(table.bytes, AlarmNamespace.key(actor)), .put([], AlarmNamespace.row(time, actor))]
        try await store.write(writes)
    }

    /// The times of the rows that an owner finds.
    private func found(_ store: EngineStore, at now: Int64 = .max) async throws -> [Int64] {
        let page = try await store.alarmRows.rows(after: nil, limit: 100, at: now)
        #expect(page.failure == nil)
        return page.rows.map(\.time)
    }

    /// The times of the rows in the coordination store.
    private func stored() async throws -> [Int64] {
        let page = try await engine.rows(of: SlotAlarmRows.table(of: slot), prefix: "", after: nil, limit: 1_000)
        return page.rows.compactMap { SlotAlarmRows.row(named: $0.name)?.time }
    }

    private func alarmTime(_ store: EngineStore) async throws -> Int64? {
        try await store.get(AlarmNamespace.key(actor)).map { try AlarmTable($0) }?.nextTime
    }

    @Test("the owner and the next owner find the row of an alarm, and none after its removal")
    func course() async throws {
        let first = try await owner()
        try await write(50, first)
        #expect(try await found(first) == [50])
        try await write(30, deleting: [50], first)
        #expect(try await found(first) == [30])
        #expect(try await eventually { try await stored() == [30] })
        let second = try await owner()
        #expect(try await found(second) == [30])
        #expect(try await alarmTime(second) == 30)
        #expect(try await second.values(of: actor, in: AlarmNamespace.times).count == 1)
        try await write(nil, deleting: [30], second)
        #expect(try await found(second) == [])
        #expect(try await eventually { try await stored() == [] })
        #expect(try await second.values(of: actor, in: AlarmNamespace.times).isEmpty)
    }

    @Test("a write of the same next time inserts no row")
    func sameTime() async throws {
        let engineRoute = FaultyEngine(engine)
        let store = try await owner(engineRoute)
        try await write(50, store)
        // Only the append may follow.
        engineRoute.set { $0.writesUntilAway = 1 }
        try await write(50, store)
        #expect(try await stored() == [50])
    }

    @Test("a node that is killed after any step loses no alarm", arguments: 0...4)
    func killed(steps: Int) async throws {
        let engineRoute = FaultyEngine(engine)
        let first = try await owner(engineRoute)
        try await write(50, first)
        engineRoute.set { $0.writesUntilAway = steps }
        // Steps: the new row, the log, the deletion of the old row.
        let isAcknowledged = (try? await write(30, deleting: [50], first)) != nil
        #expect(isAcknowledged == (steps >= 2))
        let second = try await owner()
        let time = try #require(try await alarmTime(second))
        #expect(isAcknowledged ? time == 30 : [30, 50].contains(time))
        #expect(try await found(second).contains(time))
        // The server deletes a row that it finds and that no alarm of the actor has written.
        for row in try await found(second) where row != time { try await write(time, deleting: [row], second) }
        #expect(try await found(second) == [time])
        #expect(try await eventually { try await stored() == [time] })
    }

    @Test("a deletion that arrives after the next owner has set an alarm for the same time deletes another row")
    func lateDeletion() async throws {
        let engineRoute = FaultyEngine(engine)
        let first = try await owner(engineRoute)
        try await write(50, first)
        engineRoute.set { $0.delaysDeletions = true }
        try await write(nil, deleting: [50], first)
        let second = try await owner()
        try await write(50, second)
        #expect(try await stored() == [50, 50])
        try await engineRoute.applyDeletions()
        #expect(
            try await eventually {
                try await engineRoute.applyDeletions()
                return try await stored() == [50]
            })
        let third = try await owner()
        #expect(try await found(third) == [50])
        #expect(try await alarmTime(third) == 50)
    }

    @Test("the row of a node that has lost the slot is removed by the owner, and its write is refused")
    func staleOwner() async throws {
        let first = try await owner()
        try await write(40, first)
        let second = try await owner()
        await #expect(throws: StateStoreError.self) { try await write(20, deleting: [40], first) }
        #expect(try await found(second) == [20, 40])
        #expect(try await alarmTime(second) == 40)
        try await write(40, deleting: [20], second)
        #expect(try await found(second) == [40])
        #expect(try await eventually { try await stored() == [40] })
        // Rows that the former owner still has in memory are not removed by a write that is refused.
        await #expect(throws: StateStoreError.self) { try await write(nil, deleting: [40], first) }
        #expect(try await stored() == [40])
    }

    @Test("an owner that writes lost entries again writes the rows again", arguments: [true, false])
    func lostEntries(writes: Bool) async throws {
        let losses = Journal()
        let store = try await owner(didLose: { losses.record("loss") })
        try await write(50, store)
        try await write(30, deleting: [50], store)
        #expect(try await eventually { try await stored() == [30] })
        let log = ClusterLog(actor)
        // The server lost its newest writes: the entry, and the row before it.
        let name = try #require(
            try await engine.rows(of: SlotAlarmRows.table(of: slot), prefix: "", after: nil, limit: 1).rows.first?.name)
        _ = try await engine.apply(TableChange([.init(name, .delete)]), to: SlotAlarmRows.table(of: slot))
        engine.loseNewest(1, of: log)
        if writes { try await write(30, store) } else { #expect(await store.checkEnds() == []) }
        #expect(try await stored() == [30])
        let next = try await owner()
        #expect(try await alarmTime(next) == 30)
        #expect(losses.entries.isEmpty)
    }

    @Test("a slot whose rows cannot be read is reported, and the rows of others are found")
    func unreadable() async throws {
        let engineRoute = FaultyEngine(engine)
        let store = try await owner(engineRoute)
        try await write(50, store)
        let next = try await owner(engineRoute)
        engineRoute.set { $0.isAway = true }
        let page = try await next.alarmRows.rows(after: nil, limit: 10, at: 100)
        #expect(page.rows.isEmpty && page.failure?.code == .unavailable)
        engineRoute.set { $0.isAway = false }
        #expect(try await found(next) == [50])
    }

    @Test("100,000 rows that wait: few are in memory, and those that are due are found in their order")
    func many() async throws {
        let engineRoute = FaultyEngine(engine)
        var names: [ClusterSlot: [TableChange.Write]] = [:]
        for number in 0..<100_000 {
            let actor = "chimes/\(number)"
            // One of 100 is due.
            let time = Int64(number % 100 == 0 ? number : 1_000_000 + number)
            let row = SlotAlarmRows.row(time, actor, at: LogPosition(fence: 1, offset: 0))
            names[ClusterSlot(of: actor), default: []].append(.init(row.name, .put([])))
        }
        for (slot, writes) in names {
            _ = try await engine.apply(TableChange(writes), to: SlotAlarmRows.table(of: slot))
        }
        let node = try ClusterNode(name: "n")
        let store = EngineStore(engineRoute) { SlotLease($0, owner: node, fence: 1) }
        var (position, times) = (String?.none, [Int64]())
        while true {
            let page = try await store.alarmRows.rows(after: position, limit: 256, at: 500_000)
            let due = page.rows.filter { $0.time <= 500_000 }
            #expect(due.count <= 256)
            times += due.map(\.time)
            position = due.last?.name ?? position
            guard due.count == page.rows.count, !page.isLast else {
                #expect(page.rows.last?.time == 1_000_001)
                break
            }
        }
        #expect(times == (0..<1_000).map { Int64($0 * 100) })
        #expect(store.alarmRows.count <= ClusterSlot.count * AlarmRowWindow.pageSize)
        // One page of each slot, and of the few slots with a page of due rows another one.
        #expect(engineRoute.tableReadCount <= ClusterSlot.count * 2)
        let reads = engineRoute.tableReadCount
        _ = try await store.alarmRows.rows(after: position, limit: 256, at: 500_000)
        #expect(engineRoute.tableReadCount == reads)
    }
}

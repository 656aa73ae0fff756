import NodeSupport
import Synchronization
import TestSupport
import Testing
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// A coordination store that returns with older logs while the leases of their owner are valid.
@Suite(.timeLimit(.minutes(5))) struct LostEntriesTests {
    private let key = StateKey("states", "a.count", partition: "a")
    private let log = ClusterLog("a")
    private let engine = MemoryEngine()
    private let losses = Journal()
    private let lines = Journal()

    private func store(_ engineRoute: FaultyEngine? = nil, mostRecentBytes: Int = 1 << 20) async throws -> EngineStore {
        if let lease = try await engine.owner(of: log.slot)?.lease { _ = try await engine.releaseLease(lease) }
        let node = try ClusterNode(name: "n")
        let lease = try #require(try await engine.acquire(log.slot, for: node, duration: .seconds(600)).lease)
        let (losses, lines) = (losses, lines)
        let store = EngineStore(
            engineRoute ?? engine as any ClusterEngine, mostRecentBytes: mostRecentBytes,
            didLose: { losses.record("\($1.code): \($1.message)") }, lease: { $0 == lease.slot ? lease : nil })
        store.report { lines.record($0) }
        return store
    }

    private func append(_ numbers: ClosedRange<UInt64>, _ store: EngineStore) async throws {
        for number in numbers {
            try await store.write([
                .append(LogEntry(version: number, baseVersion: number - 1, bytes: [UInt8(number)]), key)
            ])
        }
    }

    private func startedStore(_ engineRoute: FaultyEngine? = nil, mostRecentBytes: Int = 1 << 20) async throws
        -> EngineStore
    {
        let store = try await store(engineRoute, mostRecentBytes: mostRecentBytes)
        try await store.write([.snapshot(LogSnapshot(epoch: "first", version: 1, bytes: [1]), key)])
        try await append(2...5, store)
        return store
    }

    /// The versions that the next owner finds.
    private func found() async throws -> [UInt64]? {
        let log = try await store().readLog(key)
        return log.map { [$0.snapshot.version] + $0.entries.map(\.version) }
    }

    @Test("the next write restores acknowledged entries, and the log names the actor", arguments: [1, 3, 5])
    func written(lost: Int) async throws {
        let store = try await startedStore()
        engine.loseNewest(lost, of: log)
        try await append(6...7, store)
        #expect(try await found() == [1, 2, 3, 4, 5, 6, 7])
        #expect(lines.entries.count == 1 && losses.entries.isEmpty)
        let count = lost == 1 ? "1 entry" : "\(lost) entries"
        #expect(lines.entries.first?.contains("newest \(count) of the log of actor 'a'") == true)
    }

    @Test("a read by the owner finds acknowledged entries")
    func read() async throws {
        let store = try await startedStore()
        engine.loseNewest(2, of: log)
        #expect(try await store.readLog(key)?.lastVersion == 5)
        #expect(try await found() == [1, 2, 3, 4, 5])
    }

    @Test("after a new connection the ends of all logs are compared before any write")
    func compared() async throws {
        let store = try await startedStore()
        engine.loseNewest(2, of: log)
        #expect(await store.checkEnds() == [])
        #expect(try await found() == [1, 2, 3, 4, 5])
    }

    @Test("an owner's incarnation is restored like its entries, so that streams continue")
    func newIncarnation() async throws {
        _ = try await startedStore()
        let second = try await store()
        let epoch = try #require(try await second.readLog(key)).snapshot.epoch
        engine.loseNewest(1, of: log)
        try await append(6...6, second)
        let next = try #require(try await store().readLog(key))
        #expect(
            next.earlierIncarnations.last == StreamIncarnation(epoch: epoch, lastVersion: 6) && losses.entries.isEmpty)
    }

    @Test("an interrupted restore continues at the next attempt")
    func interrupted() async throws {
        let engineRoute = FaultyEngine(engine)
        let store = try await startedStore(engineRoute)
        engine.loseNewest(4, of: log)
        engineRoute.set { $0.losesNextAnswers = 1 }
        // The response to the first restored entry is lost, although the entry is there.
        #expect(await store.checkEnds() == ["a"])
        #expect(await store.checkEnds() == [])
        #expect(try await found() == [1, 2, 3, 4, 5])
        engineRoute.set { $0.isAway = true }
        #expect(await store.checkEnds() == ["a"])
    }

    @Test("a loss of entries that are not retained is a data loss: nothing is written or read from then on")
    func evictedEntries() async throws {
        let store = try await startedStore(mostRecentBytes: 300)
        engine.loseNewest(1, of: log)
        try await append(6...6, store)
        engine.loseNewest(4, of: log)
        let top = try await engine.read(log, after: nil).head
        for _ in 0..<2 {
            let error = await #expect(throws: StateStoreError.self) { try await append(7...7, store) }
            #expect(error?.code == .failed)
            await #expect(throws: StateStoreError.self) { try await store.readLog(key) }
        }
        #expect(await store.checkEnds() == [])
        #expect(try await engine.read(log, after: nil).head == top)
        #expect(
            losses.entries.allSatisfy { $0.hasPrefix("dataLoss: ") && $0.contains("ended at 6, and ends at 2 now") })
        #expect(losses.entries.count > 1)
        // A node that continues all the same starts another incarnation.
        store.forgetAll()
        let log = try #require(try await store.readLog(key))
        #expect(log.lastVersion == 2 && log.earlierIncarnations == [StreamIncarnation(epoch: "first", lastVersion: 2)])
    }

    @Test("the loss of entries that replicas have never confirmed is no data loss", arguments: [1, 2, 3])
    func unconfirmed(attempts: Int) async throws {
        let engineRoute = FaultyEngine(engine)
        engineRoute.set { $0.confirms = true }
        let store = try await startedStore(engineRoute)
        let confirmed = try await engine.read(log, after: nil).head.offset
        engineRoute.set { $0.hasNoReplicas = true }
        for _ in 0..<attempts { await #expect(throws: StateStoreError.self) { try await append(6...6, store) } }
        // A failover to a replica without them.
        let top = try await engine.read(log, after: nil).head.offset
        #expect(top > confirmed)
        engine.loseNewest(Int(top - confirmed), of: log)
        engineRoute.set { $0.hasNoReplicas = false }
        #expect(await store.checkEnds() == [])
        try await append(6...6, store)
        #expect(try await found() == [1, 2, 3, 4, 5, 6])
        #expect(losses.entries.isEmpty)
    }

    @Test("a data loss that the confirmation of an unanswered entry shows is reported at once")
    func lossAtConfirmation() async throws {
        let engineRoute = FaultyEngine(engine)
        engineRoute.set { $0.confirms = true }
        let store = try await startedStore(engineRoute)
        engineRoute.set { ($0.losesNextAnswers, $0.appendsUntilDataLoss) = (1, 1) }
        let error = await #expect(throws: StateStoreError.self) { try await append(6...6, store) }
        #expect(error?.code == .failed && losses.entries.count == 1)
    }

    @Test("a log in which other entries have replaced lost ones is not continued")
    func otherHistory() async throws {
        let store = try await startedStore()
        engine.loseNewest(3, of: log)
        let lease = try #require(try await engine.owner(of: log.slot)?.lease)
        _ = try await engine.append(LogAppend(ActorLogEntry.bytes(of: []), expectedHead: 2), to: log, lease: lease)
        let error = await #expect(throws: StateStoreError.self) { try await append(6...6, store) }
        #expect(error?.code == .failed && losses.entries.count == 1)
    }

    @Test("a removed log that reappears is removed again; an unanswered removal is no loss")
    func removed() async throws {
        let store = try await store()
        try await store.put([1], key)
        var deletion = StateWrite.delete(key)
        deletion.ownership = store.ownership(of: "a")
        try await store.write([deletion])
        let entry = try #require(try await engine.read(log, after: nil).entries.first)
        try await store.remove("a", ownedUnder: store.ownership(of: "a"))
        #expect(try await engine.read(log, after: nil).head == .start)
        let lease = try #require(try await engine.owner(of: log.slot)?.lease)
        _ = try await engine.append(LogAppend(entry.payload, expectedHead: 0), to: log, lease: lease)
        #expect(try await store.get(key) == nil)
        #expect(try await engine.read(log, after: nil).head == .start)
        let partition = ActorLog("b")
        partition.didRemove(under: 1, isInDoubt: true)
        partition.didRead(to: LogPosition(fence: 1, offset: 7), under: 1)
        #expect(
            try await !store.restore(
                partition, from: 0, under: SlotLease(partition.log.slot, owner: lease.owner, fence: 1)))
        #expect(losses.entries.isEmpty)
    }

    @Test("an unanswered entry found by a later read is restored with the others")
    func unanswered() async throws {
        let store = try await startedStore()
        let lease = try #require(try await engine.owner(of: log.slot)?.lease)
        let entry = ActorLogEntry.bytes(of: [.append(LogEntry(version: 6, baseVersion: 5, bytes: [6]), key)])
        _ = try await engine.append(LogAppend(entry, expectedHead: 5), to: log, lease: lease)
        await #expect(throws: StateStoreError.self) { try await append(6...6, store) }
        #expect(try await store.readLog(key)?.lastVersion == 6)
        engine.loseNewest(3, of: log)
        try await append(7...7, store)
        #expect(try await found() == [1, 2, 3, 4, 5, 6, 7])
    }

    @Test("a node that no longer owns the log reports that the next owner continues without entries")
    func elsewhere() async throws {
        let isOwner = Mutex(true)
        let node = try ClusterNode(name: "n")
        let lease = try #require(
            try await engine.acquire(log.slot, for: node, duration: .seconds(600)).lease)
        let store = EngineStore(engine) { slot in isOwner.withLock { $0 } && slot == lease.slot ? lease : nil }
        let lines = lines
        store.report { lines.record($0) }
        try await store.put([1], key)
        try await store.put([2], key)
        isOwner.withLock { $0 = false }
        engine.loseNewest(1, of: log)
        try await self.store().put([3], key)
        // It may still become the owner under the same fence.
        #expect(await store.checkEnds() == [])
        #expect(lines.entries.isEmpty)
        for _ in 0..<2 { #expect(await store.checkEnds(isSettled: true) == []) }
        #expect(lines.entries.map { $0.contains("the log of actor 'a', which this node no longer owns") } == [true])
    }

    @Test("a replica that is behind is no data loss: its log is read again")
    func readBehind() async throws {
        let engineRoute = FaultyEngine(engine)
        let store = try await startedStore(engineRoute, mostRecentBytes: 300)
        engineRoute.set { $0.readsNothing = true }
        let error = await #expect(throws: StateStoreError.self) { try await store.readLog(key) }
        #expect(error?.code == .unavailable && losses.entries.isEmpty)
        #expect(await store.checkEnds() == [])
        engineRoute.set { $0.readsNothing = false }
        #expect(try await store.readLog(key)?.lastVersion == 5)
        try await append(6...6, store)
        #expect(try await found() == [1, 2, 3, 4, 5, 6] && losses.entries.isEmpty)
    }

    @Test("a log removed by the next owner is no data loss for the previous one, nor are its newest entries")
    func removedByNext() async throws {
        let store = try await startedStore(mostRecentBytes: 300)
        let next = try await self.store()
        let lease = try #require(try await engine.owner(of: log.slot)?.lease)
        let top = try await engine.read(log, after: nil).head
        #expect(try await engine.removeLog(log, at: top.offset, lease: lease) == .stored)
        let error = await #expect(throws: StateStoreError.self) { try await store.readLog(key) }
        #expect(error?.code == .conflict && losses.entries.isEmpty)
        try await next.put([1], key)
        #expect(await store.checkEnds(isSettled: true) == [])
        #expect(losses.entries.isEmpty && lines.entries.isEmpty)
    }

    @Test("a node whose log restarts under the next owner does not report lost entries")
    func beginsAgain() async throws {
        let isOwner = Mutex(true)
        let node = try ClusterNode(name: "n")
        let lease = try #require(
            try await engine.acquire(log.slot, for: node, duration: .seconds(600)).lease)
        let store = EngineStore(engine) { slot in isOwner.withLock { $0 } && slot == lease.slot ? lease : nil }
        let lines = lines
        store.report { lines.record($0) }
        for value in 1...3 as ClosedRange<UInt8> { try await store.put([value], key) }
        isOwner.withLock { $0 = false }
        let next = try await self.store()
        let second = try #require(try await engine.owner(of: log.slot)?.lease)
        let top = try await engine.read(log, after: nil).head
        #expect(try await engine.removeLog(log, at: top.offset, lease: second) == .stored)
        try await next.put([1], key)
        #expect(await store.checkEnds(isSettled: true) == [])
        #expect(lines.entries.isEmpty)
    }

    @Test("a removed log that another node writes by now is not reported as removed again")
    func removedAndTaken() async throws {
        let store = try await store()
        try await store.put([1], key)
        var deletion = StateWrite.delete(key)
        deletion.ownership = store.ownership(of: "a")
        try await store.write([deletion])
        try await store.remove("a", ownedUnder: store.ownership(of: "a"))
        try await self.store().put([2], key)
        #expect(await store.checkEnds() == [])
        #expect(lines.entries.isEmpty && losses.entries.isEmpty)
    }

    @Test("while the coordination store does not respond only some logs are tried, and the others stay due")
    func left() async throws {
        let engineRoute = FaultyEngine(engine)
        let node = try ClusterNode(name: "n")
        let store = EngineStore(engineRoute) { SlotLease($0, owner: node, fence: 1) }
        var slots: Set<ClusterSlot> = []
        for name in (0..<100).map({ "b\($0)" }) where slots.insert(ClusterSlot(of: name)).inserted {
            _ = try await engine.acquire(ClusterSlot(of: name), for: node, duration: .seconds(600))
            try await store.put([1], StateKey("n", "k", partition: name))
        }
        let known = Set(store.knownPartitions)
        engineRoute.set { $0.isAway = true }
        let before = engineRoute.readTotal
        let left = await store.checkEnds()
        #expect(Set(left) == known && left.count == known.count && known.count > 50)
        #expect(engineRoute.readTotal - before <= 32)
        engineRoute.set { $0.isAway = false }
        #expect(await store.checkEnds(of: Array(left.prefix(3))) == [])
        #expect(engineRoute.readTotal - before <= 35)
    }

    @Test("retained entries have a byte limit over all logs, and the oldest are dropped first")
    func bounded() async throws {
        let recent = RecentEntries(maximumBytes: 10 * 1_128)
        let partitions = ["a", "b", "c"].map { ActorLog($0) }
        for number in 1...1_000 as ClosedRange<UInt64> {
            for partition in partitions {
                let place = LogPosition(fence: 1, offset: number)
                recent.insert([UInt8](repeating: 1, count: 1_000), to: partition, at: place)
                #expect(recent.bytes <= 10 * 1_128)
            }
        }
        #expect(partitions.map { $0.recent(behind: 997)?.count } == [3, 3, 3])
        #expect(partitions.map { $0.recent(behind: 996) == nil } == [true, true, false])
        partitions[2].discardContents(all: true)
        #expect(partitions[2].recent(behind: 999) == nil)
    }

    @Test("only the first lines about losses are logged, and then the number of further ones")
    func reports() async throws {
        let store = try await store()
        for number in 0..<25 { store.report("\(number)") }
        #expect(lines.entries.count == 20)
        store.endReports()
        #expect(lines.entries.last == "the coordination store lost entries of 5 more logs")
    }
}

import NodeSupport
import Synchronization
import Testing
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// Logs of actors in a coordination store, across successive owners.
@Suite struct EngineStoreTests {
    private let key = StateKey("states", "a.count", partition: "a")
    private let log = ClusterLog("a")
    private let node: ClusterNode

    init() throws { node = try ClusterNode(name: "n") }

    /// The store of the actor's next owner.
    private func nextOwner(_ engine: MemoryEngine) async throws -> EngineStore {
        if let lease = try await engine.owner(of: log.slot)?.lease { _ = try await engine.releaseLease(lease) }
        let lease = try #require(try await engine.acquire(log.slot, for: node, duration: .seconds(60)).lease)
        return EngineStore(engine) { $0 == lease.slot ? lease : nil }
    }

    private func append(_ numbers: ClosedRange<UInt64>, _ store: EngineStore) async throws {
        for number in numbers {
            try await store.write([
                .append(
                    LogEntry(version: number, baseVersion: number - 1, bytes: [UInt8(truncatingIfNeeded: number)]), key)
            ])
        }
    }

    private func begin(_ engine: MemoryEngine) async throws {
        let store = try await nextOwner(engine)
        #expect(try await store.readLog(key) == nil)
        try await store.write([.snapshot(LogSnapshot(epoch: "first", version: 1, bytes: [1]), key)])
        try await append(2...5, store)
    }

    @Test("each owner starts an incarnation and knows the last versions of the earlier ones")
    func incarnations() async throws {
        let engine = MemoryEngine()
        try await begin(engine)
        let second = try await nextOwner(engine)
        let found = try #require(try await second.readLog(key))
        #expect(found.snapshot.epoch != "first")
        #expect(found.earlierIncarnations == [StreamIncarnation(epoch: "first", lastVersion: 5)])
        #expect(found.lastVersion == 5)
        try await append(6...7, second)
        // The incarnation stays, however often the log is read.
        #expect(try await second.readLog(key)?.snapshot.epoch == found.snapshot.epoch)
        let third = try #require(try await nextOwner(engine).readLog(key))
        #expect(
            third.earlierIncarnations == found.earlierIncarnations + [
                StreamIncarnation(epoch: found.snapshot.epoch, lastVersion: 7)
            ])
        // An incarnation without changes was visible all the same.
        let fourth = try #require(try await nextOwner(engine).readLog(key))
        #expect(fourth.earlierIncarnations.map(\.lastVersion) == [5, 7, 7])
        #expect(Set(fourth.earlierIncarnations.map(\.epoch) + [fourth.snapshot.epoch]).count == 4)
    }

    @Test("a deletion at a node that does not own the actor is not acknowledged; expired responses need no owner")
    func deletions() async throws {
        let engine = MemoryEngine()
        let store = EngineStore(engine) { _ in nil }
        var deletion = StateWrite.delete(StateKey("rooms", "a.stay", partition: "a"))
        try await store.write([deletion])
        deletion.ownership = 1
        let error = await #expect(throws: StateStoreError.self) { try await store.write([deletion]) }
        #expect(error?.code == .conflict)
    }

    @Test("while the lease of an owned slot awaits renewal, loads and writes of its actors fail as retryable")
    func renewing() async throws {
        let engine = MemoryEngine()
        let lease = try #require(
            try await engine.acquire(log.slot, for: node, duration: .seconds(60)).lease)
        let isDue = Mutex(false)
        let known = { @Sendable (slot: ClusterSlot) -> SlotLease? in slot == lease.slot ? lease : nil }
        let store = EngineStore(engine, known: known) { slot in isDue.withLock { $0 } ? nil : known(slot) }
        let key = StateKey("n", "k", partition: "a")
        try await store.put([1], key)
        isDue.withLock { $0 = true }
        for key in [key, StateKey("n", "k", partition: "of no slot of this node")] {
            let isOwned = key.partition == "a"
            let code: StateStoreError.Code = isOwned ? .unavailable : .conflict
            let errors = [
                await #expect(throws: StateStoreError.self) { try await store.put([2], key) },
                await #expect(throws: StateStoreError.self) { try await store.get(key) },
            ]
            #expect(errors.map { $0?.code } == [code, code])
        }
        // Data loaded meanwhile belongs to the lease all the same.
        var write = StateWrite.put([3], key)
        write.ownership = store.ownership(of: "a")
        isDue.withLock { $0 = false }
        try await store.write([write])
        #expect(try await store.get(key) == [3])
    }

    @Test("an entry of another owner is not mistaken for an unanswered one, even with the same content")
    func sameEntry() async throws {
        let engine = MemoryEngine()
        let engineRoute = FaultyEngine(engine)
        let (log, node) = (log, node)
        @Sendable func acquire() async throws -> SlotLease {
            try #require(try await engine.acquire(log.slot, for: node, duration: .seconds(60)).lease)
        }
        let lease = try await acquire()
        let store = EngineStore(engineRoute) { _ in lease }
        let key = StateKey("n", "k", partition: "a")
        try await store.put([1], key)
        engineRoute.set { $0.losesNextAppends = 1 }
        engineRoute.afterLostAppend {
            _ = try? await engine.releaseLease(lease)
            await #expect(throws: Never.self) {
                let next = try await acquire()
                try await EngineStore(engine) { _ in next }.put([2], key)
            }
        }
        await #expect(throws: StateStoreError.self) { try await store.put([2], key) }
    }

    @Test("versions that the coordination store has lost are not listed in an incarnation")
    func lost() async throws {
        let engine = MemoryEngine()
        try await begin(engine)
        // The replica that is promoted lacks two of the entries.
        let replica = MemoryEngine()
        let lease = try #require(
            try await replica.acquire(log.slot, for: node, duration: .seconds(1)).lease)
        for (offset, entry) in try await engine.read(log, after: nil).entries.dropLast(2).enumerated() {
            let append = LogAppend(entry.payload, expectedHead: UInt64(offset))
            #expect(try await replica.append(append, to: log, lease: lease) == .accepted(UInt64(offset + 1)))
        }
        let store = try await nextOwner(replica)
        let found = try #require(try await store.readLog(key))
        #expect(found.earlierIncarnations == [StreamIncarnation(epoch: "first", lastVersion: 3)])
        try await append(4...6, store)
        #expect(
            try await store.readLog(key)?.earlierIncarnations == [StreamIncarnation(epoch: "first", lastVersion: 3)])
    }

    /// A coordination store with the first entries of another's log, under the same lease.
    private func replica(of engine: MemoryEngine, dropping count: Int) async throws -> (MemoryEngine, SlotLease) {
        let replica = MemoryEngine()
        let lease = try #require(try await replica.acquire(log.slot, for: node, duration: .seconds(60)).lease)
        for (offset, entry) in try await engine.read(log, after: nil).entries.dropLast(count).enumerated() {
            let append = LogAppend(entry.payload, expectedHead: UInt64(offset))
            #expect(try await replica.append(append, to: log, lease: lease) == .accepted(UInt64(offset + 1)))
        }
        return (replica, lease)
    }

    @Test(
        "a reader detects a restored coordination store, even when other entries occupy the positions that it has read")
    func rereadLogs() async throws {
        let engine = MemoryEngine()
        try await begin(engine)
        let lease = try #require(try await engine.owner(of: log.slot)?.lease)
        let owner = EngineStore(engine) { $0 == lease.slot ? lease : nil }
        let reader = EngineStore(engine) { _ in nil }
        let first = try await reader.readLog(at: key, after: nil)
        guard case .complete(let whole?) = first.found else { return #expect(Bool(false), "nothing was found") }
        #expect(whole.lastVersion == 5)
        try await append(6...7, owner)
        // Each read returns only the new entries.
        let second = try await reader.readLog(at: key, after: first.seen)
        guard case .entries(let entries) = second.found else { return #expect(Bool(false), "all of it came again") }
        #expect(entries.map(\.version) == [6, 7])
        guard case .entries([]) = try await reader.readLog(at: key, after: second.seen).found else {
            return #expect(Bool(false), "nothing has changed")
        }
        // The last two entries are lost, and others take their positions and more, under the same fence.
        let (restored, same) = try await replica(of: engine, dropping: 2)
        #expect(same.fence == lease.fence)
        let again = EngineStore(restored) { $0 == same.slot ? same : nil }
        for number in 6...9 as ClosedRange<UInt64> {
            try await again.write([.append(LogEntry(version: number, baseVersion: number - 1, bytes: [99]), key)])
        }
        guard case .complete(let found?) = try await again.readLog(at: key, after: second.seen).found else {
            return #expect(Bool(false), "the reader continued in a lost log")
        }
        #expect(found.entries.suffix(4).allSatisfy { $0.bytes == [99] })
    }

    @Test("a log continues its owner's incarnation unless the owner may have lost writes")
    func continuity() {
        let partition = ActorLog("a")
        let last = LogPosition(fence: 3, offset: 50)
        #expect(
            partition.isContinuous(at: last, under: 3) && !partition.isContinuous(at: last, under: 3, hasLost: true))
        partition.didRead(to: LogPosition(fence: 2, offset: 49), under: 3)
        #expect(!partition.isContinuous(at: LogPosition(fence: 2, offset: 49), under: 3))
        partition.didLoad(ActorLogContents(), at: last, ActorLogSize(), under: 3)
        #expect(
            partition.isContinuous(at: last, under: 3, hasLost: true) && !partition.isContinuous(at: last, under: 4))
    }

    @Test("concurrent reads of a log that its owner has not loaded return the same incarnation, without errors")
    func atOnce() async throws {
        let engine = MemoryEngine()
        try await begin(engine)
        for round in 1...50 {
            let store = try await nextOwner(engine)
            let found = try await withThrowingTaskGroup(of: StoredLog?.self) { group in
                for _ in 0..<8 { group.addTask { try await store.readLog(key) } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(Set(found.map { $0?.snapshot.epoch }).count == 1, "round \(round)")
            #expect(found.allSatisfy { $0?.earlierIncarnations.count == round }, "round \(round)")
        }
    }

    @Test("a log that is read while its owner writes it does not return to an earlier version")
    func readWhileWritten() async throws {
        let engine = MemoryEngine()
        try await begin(engine)
        let store = try await nextOwner(engine)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await append(6...1_000, store) }
            group.addTask { for _ in 0..<1_000 { _ = try await store.readLog(key) } }
            try await group.waitForAll()
        }
        #expect(try await store.readLog(key)?.lastVersion == 1_000)
    }

    @Test("requests for many other names do not end an incarnation that subscribers have seen")
    func forgottenNames() async throws {
        let engine = MemoryEngine()
        try await begin(engine)
        if let lease = try await engine.owner(of: log.slot)?.lease { _ = try await engine.releaseLease(lease) }
        let lease = try #require(
            try await engine.acquire(log.slot, for: node, duration: .seconds(60)).lease)
        let store = EngineStore(engine, maximumPartitions: 10) {
            SlotLease($0, owner: node, fence: $0 == lease.slot ? lease.fence : 1)
        }
        let epoch = try #require(try await store.readLog(key)).snapshot.epoch
        for number in 0..<20 { _ = try await store.get([StateKey("calls", "x/1", partition: "b\(number)")]) }
        try await append(6...7, store)
        let next = try #require(try await nextOwner(engine).readLog(key))
        #expect(next.earlierIncarnations.last == StreamIncarnation(epoch: epoch, lastVersion: 7))
    }

    @Test("a full log that could not be compacted accepts entries once it can be, from its owner and the next one")
    func full() async throws {
        var limits = ClusterEngineLimits()
        limits.entriesPerLog = 100
        let memory = MemoryEngine(limits: limits)
        let engine = FaultyEngine(memory)
        let lease = try #require(
            try await memory.acquire(log.slot, for: node, duration: .seconds(60)).lease)
        let store = EngineStore(engine) { $0 == lease.slot ? lease : nil }
        engine.set { $0.failsSnapshots = true }
        try await store.write([.snapshot(LogSnapshot(epoch: "first", version: 1, bytes: [1]), key)])
        try await append(2...100, store)
        await #expect(throws: StateStoreError.self) { try await append(101...101, store) }
        // The next owner starts an incarnation in it.
        let other = try await nextOwner(memory)
        #expect(try await other.readLog(key)?.lastVersion == 100)
        try await append(101...150, other)
        engine.set { $0.failsSnapshots = false }
        #expect(try await nextOwner(memory).readLog(key)?.lastVersion == 150)
    }

    @Test("an actor's writes are accepted only under the ownership under which it was loaded")
    func ownership() async throws {
        let engine = MemoryEngine()
        try await begin(engine)
        let second = try await nextOwner(engine)
        let ownership = second.ownership(of: "a")
        _ = try await second.readLog(key)
        // The slot moves away and back.
        let third = try await nextOwner(engine)
        var write = StateWrite.append(LogEntry(version: 6, baseVersion: 5, bytes: [6]), key)
        write.ownership = ownership
        await #expect(throws: StateStoreError.self) { try await third.write([write]) }
        write.ownership = third.ownership(of: "a")
        try await third.write([write])
        #expect(third.ownership(of: "b") == 0)
    }

    @Test("a change that does not follow the last version is refused, and not written")
    func doesNotFollow() async throws {
        let engine = MemoryEngine()
        try await begin(engine)
        let store = try await nextOwner(engine)
        await #expect(throws: StateStoreError.self) { try await append(9...9, store) }
        #expect(try await nextOwner(engine).readLog(key)?.lastVersion == 5)
    }

    @Test("requests for actors of many names use bounded memory")
    func manyNames() async throws {
        let engine = MemoryEngine()
        let store = EngineStore(engine, maximumPartitions: 10) { SlotLease($0, owner: node, fence: 1) }
        for number in 0..<100 {
            _ = try await store.readLog(StateKey("states", "a.count", partition: "a\(number)"))
            #expect(store.partitionCount <= 10)
        }
    }

    @Test(
        "a snapshot of an earlier version keeps the changes after it", arguments: [false, true])
    func laterThanSnapshot(inParts: Bool) async throws {
        let engine = MemoryEngine()
        try await begin(engine)
        let store = try await nextOwner(engine)
        let epoch = try #require(try await store.readLog(key)).snapshot.epoch
        try await append(6...10, store)
        let bytes = [UInt8](repeating: 8, count: 8)
        if inParts { try await store.write([StateWrite(key, .snapshotPart([9], index: 0, number: 8))]) }
        try await store.write([
            .snapshot(LogSnapshot(epoch: epoch, version: 8, partCount: inParts ? 1 : 0, bytes: bytes), key)
        ])
        try await append(11...12, store)
        for _ in 0..<2 {
            let found = try #require(try await nextOwner(engine).readLog(key))
            #expect(found.snapshot.version == 8)
            #expect(found.snapshot.bytes == (inParts ? [9] : []) + bytes)
            #expect(found.entries.map(\.version) == [9, 10, 11, 12])
            #expect(found.earlierIncarnations.first == StreamIncarnation(epoch: "first", lastVersion: 5))
        }
    }

    @Test("the last 64 incarnations are recorded")
    func incarnationLimit() async throws {
        let engine = MemoryEngine()
        try await begin(engine)
        for _ in 0..<70 { _ = try await nextOwner(engine).readLog(key) }
        #expect(try await nextOwner(engine).readLog(key)?.earlierIncarnations.count == 64)
    }

    @Test("a node that has lost the slot cannot read outdated data as current")
    func fenced() async throws {
        let engine = MemoryEngine()
        try await begin(engine)
        let old = try await nextOwner(engine)
        _ = try await nextOwner(engine)
        let error = await #expect(throws: StateStoreError.self) { try await old.readLog(key) }
        #expect(error?.code == .conflict)
    }
}

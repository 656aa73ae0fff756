import Testing
import Trebuchet
import TrebuchetStore

/// The log operations that every store must provide.
@Suite(.timeLimit(.minutes(5))) struct LogContractTests {
    typealias Kind = StoreContractTests.Kind

    private let key = StateKey("n", "a")

    private func withStore(_ kind: Kind, _ body: (any StateStore) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        switch kind {
        case .memory: try await body(MemoryStore())
        case .sqlite:
            let store = try SQLiteStore(path: folder.file())
            try await body(store)
            await store.close()
            // Opening verifies the whole file.
            await (try SQLiteStore(path: folder.file())).close()
        }
    }

    private func snapshot(_ number: UInt64, _ bytes: [UInt8] = [9], epoch: String = "e", parts: Int = 0) -> LogSnapshot
    {
        LogSnapshot(epoch: epoch, version: number, partCount: parts, bytes: bytes)
    }

    private func entry(_ base: UInt64, _ number: UInt64, _ bytes: [UInt8] = [1]) -> LogEntry {
        LogEntry(version: number, baseVersion: base, bytes: bytes)
    }

    private func part(_ bytes: [UInt8], _ index: Int, of number: UInt64, _ key: StateKey) -> StateWrite {
        StateWrite(key, .snapshotPart(bytes, index: index, number: number))
    }

    private func expectConflict(
        _ store: any StateStore, _ writes: [StateWrite], _ comment: Comment? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async {
        let error = await #expect(throws: StateStoreError.self, comment, sourceLocation: sourceLocation) {
            try await store.write(writes)
        }
        #expect(error?.code == .conflict, comment, sourceLocation: sourceLocation)
    }

    @Test("appended entries are read in order, after the snapshot", arguments: Kind.allCases)
    func appending(kind: Kind) async throws {
        try await withStore(kind) { (store) async throws in
            #expect(try await store.readLog(key) == nil)
            try await store.write([.snapshot(snapshot(3, [7, 0, 255]), key)])
            #expect(try await store.readLog(key) == StoredLog(snapshot: snapshot(3, [7, 0, 255]), entries: []))
            // Numbers may have gaps, and a change may be empty.
            let entries = [entry(3, 4), entry(4, 9, []), entry(9, 10, [UInt8](repeating: 5, count: 100_000))]
            try await store.write([.append(entries[0], key)])
            try await store.write([.append(entries[1], key), .append(entries[2], key)])
            let log = try await store.readLog(key)
            #expect(log == StoredLog(snapshot: snapshot(3, [7, 0, 255]), entries: entries))
            #expect(log?.lastVersion == 10)
        }
    }

    @Test(
        "a log may start with an empty snapshot, drop its oldest entries with another, and restart in one write",
        arguments: Kind.allCases)
    func emptySnapshots(kind: Kind) async throws {
        try await withStore(kind) { (store) async throws in
            try await store.write([StateWrite(key, .deleteLog), .snapshot(snapshot(0, []), key)])
            #expect(try await store.readLog(key) == StoredLog(snapshot: snapshot(0, []), entries: []))
            try await store.write((0..<5).map { .append(entry($0, $0 + 1), key) } + [.snapshot(snapshot(3, []), key)])
            let remaining = [entry(3, 4), entry(4, 5)]
            #expect(try await store.readLog(key) == StoredLog(snapshot: snapshot(3, []), entries: remaining))
            try await store.write([
                StateWrite(key, .deleteLog), .snapshot(snapshot(4, []), key), .append(entry(4, 5), key),
                .append(entry(5, 6), key),
            ])
            #expect(
                try await store.readLog(key)
                    == StoredLog(snapshot: snapshot(4, []), entries: [entry(4, 5), entry(5, 6)]))
        }
    }

    @Test("a change that does not follow is a conflict, and its whole batch is rejected", arguments: Kind.allCases)
    func conflicts(kind: Kind) async throws {
        try await withStore(kind) { (store) async throws in
            let other = StateKey("n", "b")
            await expectConflict(store, [.append(entry(0, 1), key)], "there is no log")
            try await store.write([
                .snapshot(snapshot(3), key), .append(entry(3, 4), key), .snapshot(snapshot(1), other),
            ])
            for wrong in [entry(3, 5), entry(7, 8), entry(4, 4), entry(4, 3), entry(0, 1)] {
                await expectConflict(store, [.append(wrong, key)], "\(wrong)")
                await expectConflict(
                    store,
                    [
                        .put([1], key), .append(entry(1, 2), other), .append(entry(4, 5), key), .append(wrong, key),
                        .put([2], other),
                    ], "\(wrong)")
                await expectConflict(
                    store, [.snapshot(snapshot(9), other), StateWrite(key, .deleteLog), .append(wrong, key)])
                await expectConflict(
                    store,
                    [.snapshot(snapshot(4, epoch: "f"), other), .append(entry(1, 2), other), .append(wrong, key)])
            }
            // An entry after the snapshot has another base version.
            await expectConflict(store, [.snapshot(snapshot(2), key)])
            #expect(try await store.get([key, other]) == [:])
            #expect(try await store.readLog(key) == StoredLog(snapshot: snapshot(3), entries: [entry(3, 4)]))
            #expect(try await store.readLog(other) == StoredLog(snapshot: snapshot(1), entries: []))
            try await store.write([.append(entry(4, 5), key), .append(entry(1, 2), other)])
            #expect(try await store.readLog(key)?.lastVersion == 5)
        }
    }

    @Test("a conflict of one caller does not affect concurrent writes of others", arguments: Kind.allCases)
    func conflictsOfOthers(kind: Kind) async throws {
        try await withStore(kind) { (store) async throws in
            try await store.write([.snapshot(snapshot(1), key)])
            let conflicts = await withTaskGroup(of: [Bool].self) { group in
                for writer in 0..<20 {
                    group.addTask {
                        let own = StateKey("own", "\(writer)")
                        var failed: [Bool] = []
                        for round in 1...20 as ClosedRange<UInt64> {
                            var writes = [
                                StateWrite.put([UInt8(round)], own),
                                round == 1
                                    ? .snapshot(LogSnapshot(epoch: "e", version: 1, bytes: []), own)
                                    : .append(
                                        LogEntry(version: round, baseVersion: round - 1, bytes: [UInt8(round)]), own),
                            ]
                            // The last round of every fourth writer always conflicts.
                            let isWrong = writer % 4 == 0 && round == 20
                            if isWrong { writes.append(.append(LogEntry(version: 9, baseVersion: 8, bytes: []), key)) }
                            do throws(StateStoreError) {
                                try await store.write(writes)
                                failed.append(isWrong)
                            } catch {
                                failed.append(!isWrong || error.code != .conflict)
                            }
                        }
                        return failed
                    }
                }
                return await group.reduce(into: []) { $0 += $1 }
            }
            #expect(conflicts == Array(repeating: false, count: 400))
            for writer in 0..<20 {
                let last: UInt64 = writer % 4 == 0 ? 19 : 20
                let own = StateKey("own", "\(writer)")
                #expect(try await store.readLog(own)?.lastVersion == last)
                #expect(try await store.get(own) == [UInt8(last)])
            }
        }
    }

    @Test("the parts of a snapshot may arrive in any order, and twice", arguments: Kind.allCases)
    func parts(kind: Kind) async throws {
        try await withStore(kind) { (store) async throws in
            let large = (0..<700_000).map { UInt8(truncatingIfNeeded: $0 / 251) }
            try await store.write([.snapshot(snapshot(1, [1]), key), .append(entry(1, 2), key)])
            try await store.write([part(Array(large[300_000...]), 1, of: 2, key)])
            try await store.write([part([0], 0, of: 2, key)])
            #expect(
                try await store.readLog(key)?.snapshot == snapshot(1, [1]),
                "parts of a pending snapshot are not visible")
            try await store.write([part(Array(large[..<300_000]), 0, of: 2, key), part([8], 5, of: 2, key)])
            try await store.write([.append(entry(2, 3), key)])
            try await store.write([.snapshot(snapshot(2, [1, 2, 3], parts: 2), key)])
            let whole = StoredLog(snapshot: snapshot(2, large + [1, 2, 3]), entries: [entry(2, 3)])
            #expect(try await store.readLog(key) == whole)
            // Without parts: in one piece, then empty.
            try await store.write([.snapshot(snapshot(3, large), key)])
            #expect(try await store.readLog(key) == StoredLog(snapshot: snapshot(3, large), entries: []))
            try await store.write([.snapshot(snapshot(4, []), key)])
            #expect(try await store.readLog(key) == StoredLog(snapshot: snapshot(4, []), entries: []))
            // All in one write, for a log that does not exist yet.
            let new = StateKey("n", "new")
            try await store.write([
                part([1], 0, of: 7, new), part([2], 1, of: 7, new), .snapshot(snapshot(7, [], parts: 2), new),
                .append(entry(7, 8), new),
            ])
            #expect(try await store.readLog(new) == StoredLog(snapshot: snapshot(7, [1, 2]), entries: [entry(7, 8)]))
        }
    }

    @Test("a missing part is a conflict; parts of another snapshot do not count", arguments: Kind.allCases)
    func missingParts(kind: Kind) async throws {
        try await withStore(kind) { (store) async throws in
            await expectConflict(store, [.snapshot(snapshot(2, parts: 1), key)])
            try await store.write([part([1], 0, of: 2, key), part([3], 2, of: 2, key)])
            #expect(try await store.readLog(key) == nil)
            await expectConflict(store, [.put([1], key), .snapshot(snapshot(2, parts: 3), key)])
            await expectConflict(store, [.snapshot(snapshot(3, parts: 1), key)])
            try await store.write([part([2], 1, of: 2, key)])
            // A part with another number removes the earlier ones.
            try await store.write([part([4], 1, of: 3, key)])
            await expectConflict(store, [.snapshot(snapshot(2, parts: 1), key)])
            await expectConflict(store, [.snapshot(snapshot(3, parts: 2), key)])
            try await store.write([part([5], 0, of: 3, key)])
            try await store.write([.snapshot(snapshot(3, [6], parts: 2), key)])
            #expect(try await store.readLog(key) == StoredLog(snapshot: snapshot(3, [5, 4, 6]), entries: []))
            // The parts were consumed by the snapshot.
            await expectConflict(store, [.snapshot(snapshot(3, parts: 1), key)])
            try await store.write([part([1], 0, of: 4, key), .snapshot(snapshot(3, [7]), key)])
            await expectConflict(
                store, [.snapshot(snapshot(4, parts: 1), key)], "a snapshot removes the parts of others")
            #expect(try await store.readLog(key)?.snapshot.bytes == [7])
            #expect(try await store.get(key) == nil)
        }
    }

    @Test(
        "a snapshot removes the entries before it and those of another epoch, and keeps the later ones",
        arguments: Kind.allCases)
    func snapshots(kind: Kind) async throws {
        try await withStore(kind) { (store) async throws in
            try await store.write([.snapshot(snapshot(0), key)] + (0..<10).map { .append(entry($0, $0 + 1), key) })
            try await store.write([.snapshot(snapshot(7, [7]), key)])
            let remaining = [entry(7, 8), entry(8, 9), entry(9, 10)]
            #expect(try await store.readLog(key) == StoredLog(snapshot: snapshot(7, [7]), entries: remaining))
            try await store.write([.append(entry(10, 11), key), .snapshot(snapshot(7, [8]), key)])
            #expect(
                try await store.readLog(key)
                    == StoredLog(snapshot: snapshot(7, [8]), entries: remaining + [entry(10, 11)]))
            await expectConflict(store, [.snapshot(snapshot(6), key)])
            try await store.write([.snapshot(snapshot(8, [8], epoch: "f"), key)])
            #expect(try await store.readLog(key) == StoredLog(snapshot: snapshot(8, [8], epoch: "f"), entries: []))
            // Numbers of an earlier incarnation may be reused.
            try await store.write([.append(entry(8, 9, [2]), key), .append(entry(9, 10, [3]), key)])
            try await store.write([.snapshot(snapshot(12, epoch: "f"), key), .append(entry(12, 13), key)])
            #expect(
                try await store.readLog(key) == StoredLog(snapshot: snapshot(12, epoch: "f"), entries: [entry(12, 13)]))
            try await store.write([.snapshot(snapshot(13, epoch: "f"), key), .snapshot(snapshot(5, epoch: "f"), key)])
            try await store.write([.append(entry(5, 6), key), .append(entry(6, 13, [4]), key)])
            let again = [entry(5, 6), entry(6, 13, [4])]
            #expect(try await store.readLog(key) == StoredLog(snapshot: snapshot(5, epoch: "f"), entries: again))
        }
    }

    @Test("epochs are equal when their bytes are equal", arguments: Kind.allCases)
    func epochsAreBytes(kind: Kind) async throws {
        try await withStore(kind) { (store) async throws in
            try await store.write([.snapshot(snapshot(1, epoch: "\u{E9}"), key), .append(entry(1, 2), key)])
            try await store.write([.snapshot(snapshot(1, epoch: "e\u{301}"), key)])
            #expect(try await store.readLog(key)?.entries == [])
        }
    }

    @Test("a deleted log is gone, with the parts of its pending snapshot", arguments: Kind.allCases)
    func deleting(kind: Kind) async throws {
        try await withStore(kind) { (store) async throws in
            try await store.write([StateWrite(key, .deleteLog)])
            try await store.write([.put([1], key), .snapshot(snapshot(1), key), .append(entry(1, 2), key)])
            try await store.write([part([1], 0, of: 2, key)])
            try await store.write([StateWrite(key, .deleteLog)])
            #expect(try await store.readLog(key) == nil)
            #expect(try await store.get(key) == [1])
            await expectConflict(store, [.append(entry(2, 3), key)])
            await expectConflict(store, [.snapshot(snapshot(2, parts: 1), key)])
            try await store.write([.snapshot(snapshot(1, [3]), key)])
            #expect(try await store.readLog(key) == StoredLog(snapshot: snapshot(1, [3]), entries: []))
            try await store.write([
                .append(entry(1, 2), key), StateWrite(key, .deleteLog), .snapshot(snapshot(1), key),
                .append(entry(1, 2, [5]), key),
            ])
            #expect(try await store.readLog(key) == StoredLog(snapshot: snapshot(1), entries: [entry(1, 2, [5])]))
        }
    }

    @Test("a key's value and its log are independent", arguments: Kind.allCases)
    func valuesAndLogs(kind: Kind) async throws {
        try await withStore(kind) { (store) async throws in
            try await store.write([.put([1], key), .snapshot(snapshot(1, [2]), key)])
            try await store.delete(key)
            #expect(try await store.readLog(key)?.snapshot.bytes == [2])
            #expect(try await store.list("n").isEmpty)
            try await store.put([3], key)
            try await store.write([StateWrite(key, .deleteLog)])
            #expect(try await store.get(key) == [3])
        }
    }

    @Test("names that look alike are separate logs", arguments: Kind.allCases)
    func namesAreBytes(kind: Kind) async throws {
        try await withStore(kind) { (store) async throws in
            let keys = [
                StateKey("n", "\u{E9}"), StateKey("n", "e\u{301}"), StateKey("\u{E9}", ""), StateKey("e\u{301}", ""),
            ]
            try await store.write(keys.enumerated().map { .snapshot(snapshot(UInt64($0)), $1) })
            for (index, key) in keys.enumerated() {
                #expect(try await store.readLog(key)?.lastVersion == UInt64(index))
            }
        }
    }

    @Test("a reader never sees part of a write to several logs", arguments: Kind.allCases)
    func atomicity(kind: Kind) async throws {
        try await withStore(kind) { (store) async throws in
            let other = StateKey("m", "b")
            try await store.write([key, other].map { .snapshot(snapshot(0), $0) })
            let writer = Task {
                for number in 1...300 as ClosedRange<UInt64> {
                    // The first log is always ahead.
                    var writes = [other, key].map {
                        StateWrite.append(LogEntry(version: number, baseVersion: number - 1, bytes: [1]), $0)
                    }
                    if number % 50 == 0 {
                        writes.append(.snapshot(LogSnapshot(epoch: "e", version: number, bytes: [1]), key))
                    }
                    try await store.write(writes)
                }
            }
            var last: UInt64 = 0
            while last < 300 {
                let first = try #require(await store.readLog(key))
                let second = try #require(await store.readLog(other))
                #expect(second.lastVersion >= first.lastVersion && first.lastVersion >= last)
                #expect(first.entries.count == Int(first.lastVersion - first.snapshot.version))
                last = first.lastVersion
            }
            try await writer.value
        }
    }

    @Test("many entries in many logs are stored in one write and read back", arguments: Kind.allCases)
    func many(kind: Kind) async throws {
        try await withStore(kind) { (store) async throws in
            let keys = (0..<50).map { StateKey("n", "\($0)") }
            try await store.write(keys.map { .snapshot(snapshot(0), $0) })
            let entries = (0..<200).map { entry($0, $0 + 1, [UInt8](repeating: UInt8($0), count: 60)) }
            try await store.write(entries.flatMap { entry in keys.map { .append(entry, $0) } })
            for key in keys { #expect(try await store.readLog(key)?.entries == entries) }
        }
    }

    @Test("a catalog also lists logs, each as one entry with all its bytes", arguments: Kind.allCases)
    func catalog(kind: Kind) async throws {
        try await withStore(kind) { (store) async throws in
            let catalog = try #require(store as? any CatalogedStore)
            try await store.write([
                .put([1, 2], StateKey("b", "x/1")), .snapshot(snapshot(1, [1, 2, 3]), StateKey("b", "x/1")),
                .snapshot(snapshot(1, []), StateKey("b", "y")), .append(entry(1, 2, [1, 2, 3, 4]), StateKey("b", "y")),
                .snapshot(snapshot(1), StateKey("c", "z")), part([1], 0, of: 2, StateKey("d", "nobody sees it")),
                .put([], StateKey("a", "v")),
            ])
            #expect(try await catalog.namespaces(prefix: "", after: nil, limit: 9) == ["a", "b", "c"])
            #expect(try await catalog.namespaces(prefix: "", after: "b", limit: 9) == ["c"])
            #expect(try await catalog.usage(of: "b", prefix: "") == StoreUsage(entries: 3, bytes: 9))
            #expect(try await catalog.usage(of: "b", prefix: "x/") == StoreUsage(entries: 2, bytes: 5))
            #expect(try await catalog.usage(of: "d", prefix: "") == StoreUsage(entries: 0, bytes: 0))
            try await store.write([.snapshot(snapshot(2, [1]), StateKey("b", "y"))])
            #expect(try await catalog.usage(of: "b", prefix: "y") == StoreUsage(entries: 1, bytes: 1))
        }
    }
}

import Testing
import Trebuchet
import TrebuchetStore

/// The operations that every store must provide.
@Suite(.timeLimit(.minutes(5))) struct StoreContractTests {
    enum Kind: CaseIterable, CustomTestStringConvertible {
        case memory, sqlite
        var testDescription: String { self == .memory ? "MemoryStore" : "SQLiteStore" }
    }

    private func withStore(_ kind: Kind, _ body: (any StateStore) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        switch kind {
        case .memory: try await body(MemoryStore())
        case .sqlite:
            let store = try SQLiteStore(path: folder.file())
            try await body(store)
            await store.close()
        }
    }

    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test("a value exists after put and is gone after delete", arguments: Kind.allCases)
    func putAndDelete(kind: Kind) async throws {
        try await withStore(kind) { (store) async throws in
            let key = StateKey("a", "b")
            #expect(try await store.get(key) == nil)
            try await store.put(bytes("1"), key)
            #expect(try await store.get(key) == bytes("1"))
            try await store.put(bytes("2"), key)
            #expect(try await store.get(key) == bytes("2"))
            try await store.delete(key)
            try await store.delete(key)
            #expect(try await store.get(key) == nil)
        }
    }

    @Test("any bytes and any names are read back unchanged", arguments: Kind.allCases)
    func anyBytes(kind: Kind) async throws {
        try await withStore(kind) { (store) async throws in
            let values: [StateKey: [UInt8]] = [
                StateKey("", ""): [], StateKey("n", "zero \u{0} inside"): [0, 255, 0],
                StateKey("n", "zero \u{0} inside too"): [1], StateKey("n", "'; DROP TABLE entries"): [2],
                StateKey("n", String(repeating: "x", count: 10_000)): Array(repeating: 7, count: 300_000),
            ]
            try await store.write(values.map { .put($0.value, $0.key) })
            #expect(try await store.get(Array(values.keys)) == values)
        }
    }

    @Test("names are equal when their bytes are equal, not when they look alike", arguments: Kind.allCases)
    func namesAreBytes(kind: Kind) async throws {
        try await withStore(kind) { (store) async throws in
            let (composed, decomposed) = (StateKey("n", "\u{E9}"), StateKey("n", "e\u{301}"))
            try await store.put([1], composed)
            #expect(try await store.get(decomposed) == nil)
            try await store.put([2], decomposed)
            #expect(try await store.get(composed) == [1])
            #expect(try await store.list("n", prefix: "e").map(\.value) == [[2]])
        }
    }

    @Test("a list has the names of one namespace with the prefix, in byte order", arguments: Kind.allCases)
    func listing(kind: Kind) async throws {
        try await withStore(kind) { (store) async throws in
            let names = ["a", "ab", "a/1", "a/10", "a/2", "a/é", "b", "A", ""]
            try await store.write(names.shuffled().map { .put(bytes($0), StateKey("n", $0)) })
            try await store.put([0], StateKey("m", "a/0"))
            try await store.put([0], StateKey("n2", "a/0"))
            #expect(try await store.list("n", prefix: "a/").map(\.key.name) == ["a/1", "a/10", "a/2", "a/é"])
            #expect(
                try await store.list("n").map(\.key.name) == ["", "A", "a", "a/1", "a/10", "a/2", "a/é", "ab", "b"])
            #expect(try await store.list("n", prefix: "c").isEmpty)
            #expect(try await store.list("m").map(\.value) == [[0]])
        }
    }

    @Test("pages of a list join without gaps or duplicates", arguments: Kind.allCases)
    func pages(kind: Kind) async throws {
        try await withStore(kind) { (store) async throws in
            let names = (0..<1_000).map { "doc/\($0)" }
            try await store.write(names.map { .put(bytes($0), StateKey("n", $0)) } + [.put([], StateKey("n", "doc"))])
            for limit in [1, 7, 333, 1_000, 2_000] {
                var found: [String] = []
                while true {
                    let page = try await store.list("n", prefix: "doc/", after: found.last, limit: limit)
                    found += page.map(\.key.name)
                    #expect(page.count <= limit)
                    if page.count < limit { break }
                }
                #expect(found == names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
            }
            #expect(try await store.list("n", prefix: "doc/", after: "a", limit: 1).map(\.key.name) == ["doc/0"])
            #expect(try await store.list("n", prefix: "doc/", after: "x", limit: 1).isEmpty)
            #expect(try await store.list("n", prefix: "", after: nil, limit: 0).isEmpty)
        }
    }

    @Test("the last of several writes to one key wins", arguments: Kind.allCases)
    func lastCounts(kind: Kind) async throws {
        try await withStore(kind) { (store) async throws in
            let (a, b) = (StateKey("n", "a"), StateKey("n", "b"))
            try await store.write([.put([1], a), .delete(a), .put([2], a), .put([1], b), .delete(b)])
            #expect(try await store.get([a, b]) == [a: [2]])
        }
    }

    @Test("a reader never sees part of a batch", arguments: Kind.allCases)
    func atomicity(kind: Kind) async throws {
        try await withStore(kind) { (store) async throws in
            let keys = (0..<5).map { StateKey("n", "\($0)") }
            try await store.write(keys.map { .put([0], $0) })
            try await withThrowingTaskGroup(of: Void.self) { group in
                for writer in 1...4 as ClosedRange<UInt8> {
                    group.addTask {
                        for _ in 0..<50 { try await store.write(keys.map { .put([writer], $0) }) }
                    }
                }
                for _ in 0..<200 {
                    let values = Set(try await store.get(keys).values)
                    #expect(values.count == 1, "\(values)")
                }
                try await group.waitForAll()
            }
        }
    }

    @Test("each of several concurrent writers finds its last write, in order", arguments: Kind.allCases)
    func order(kind: Kind) async throws {
        try await withStore(kind) { (store) async throws in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for writer in 0..<50 {
                    group.addTask {
                        let (own, shared) = (StateKey("own", "\(writer)"), StateKey("shared", "\(writer % 5)"))
                        for round in 1...20 as ClosedRange<UInt8> {
                            try await store.write([.put([round], own), .put([UInt8(writer), round], shared)])
                            let found = try await store.get([own, shared])
                            #expect(found[own] == [round])
                            #expect(found[shared]?.first.map { Int($0) % 5 } == writer % 5)
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await store.list("own").map(\.value) == Array(repeating: [20], count: 50))
        }
    }

    @Test("a store lists its namespaces in pages, and reports the usage of each", arguments: Kind.allCases)
    func catalog(kind: Kind) async throws {
        try await withStore(kind) { (store) async throws in
            let store = try #require(store as? any CatalogedStore)
            #expect(try await store.namespaces(prefix: "", after: nil, limit: 9) == [])
            let writes = [
                ("c.b", "d/1", 3), ("c.b", "d/2", 4), ("c.b", "e", 5), ("c.b", "d", 6), ("c.a", "d/1", 0),
                ("c", "d/1", 1),
                ("c.\u{E9}", "x", 1), ("c.e\u{301}", "x", 1), ("d", "d/1", 1),
            ].map { StateWrite.put(Array(repeating: 1, count: $0.2), StateKey($0.0, $0.1)) }
            try await store.write(writes)
            let names = ["c.a", "c.b", "c.e\u{301}", "c.\u{E9}"]
            #expect(try await store.namespaces(prefix: "c.", after: nil, limit: 9).map(bytes) == names.map(bytes))
            var paged: [String] = []
            while let page = try await store.namespaces(prefix: "c.", after: paged.last, limit: 3) as [String]?,
                !page.isEmpty
            {
                paged += page
            }
            #expect(paged.map(bytes) == names.map(bytes))
            #expect(try await store.namespaces(prefix: "c.", after: "a", limit: 1) == ["c.a"])
            #expect(try await store.namespaces(prefix: "", after: nil, limit: 1) == ["c"])
            #expect(try await store.usage(of: "c.b", prefix: "d/") == StoreUsage(entries: 2, bytes: 7))
            #expect(try await store.usage(of: "c.b", prefix: "") == StoreUsage(entries: 4, bytes: 18))
            #expect(try await store.usage(of: "none", prefix: "") == StoreUsage(entries: 0, bytes: 0))
            try await store.delete(StateKey("c.a", "d/1"))
            #expect(try await store.namespaces(prefix: "c.", after: nil, limit: 1) == ["c.b"])
        }
    }
}

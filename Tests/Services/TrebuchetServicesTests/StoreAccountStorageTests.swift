import Relays
import TestSupport
import Testing
import Trebuchet

@testable import TrebuchetServices

@Suite("The storage of the accounts of one server")
struct StoreAccountStorageTests {
    private static func changes(_ name: String, owner: String?) -> AccountRecords.Changes {
        var changes = AccountRecords.Changes()
        changes.set(owner: owner, ofAddress: name)
        return changes
    }

    private static func version(of name: String, in storage: StoreAccountStorage) async throws -> [String: UInt64] {
        ["address/" + name: try await storage.values(["address/" + name])[0].version]
    }

    @Test("a write is refused when a record that it depends on, or the lack of one, has changed since it was read")
    func stale() async throws {
        let storage = StoreAccountStorage(store: MemoryStore())
        let missing = try await Self.version(of: "a", in: storage)
        #expect(try await storage.write(Self.changes("a", owner: "1"), expecting: missing) == 1)
        #expect(try await storage.write(Self.changes("a", owner: "2"), expecting: missing) == nil)
        let found = try await Self.version(of: "a", in: storage)
        #expect(try await storage.write(Self.changes("b", owner: "1"), expecting: found) == 2)
        #expect(try await storage.write(Self.changes("a", owner: nil), expecting: found) == 3)
        #expect(try await storage.write(Self.changes("b", owner: "2"), expecting: found) == nil)
        #expect(try await storage.values(["address/a"])[0].bytes == nil)
        #expect(try await storage.values(["address/b"])[0].bytes == Array("1".utf8))
    }

    @Test("of two writes at once that depend on the same record one is refused, and others share the time")
    func atOnce() async throws {
        let part = StateRelay<PartState>(.working)
        let storage = StoreAccountStorage(store: TestStore(memory: MemoryStore(), part: part))
        let versions = try await Self.version(of: "a", in: storage)
        part.update(.paused)
        let outcomes = try await withThrowingTaskGroup(of: UInt64?.self) { group in
            for owner in ["1", "2", "3"] {
                group.addTask { try await storage.write(Self.changes("a", owner: owner), expecting: versions) }
            }
            group.addTask { try await storage.write(Self.changes("b", owner: "1"), expecting: [:]) }
            part.update(.working)
            return try await group.reduce(into: [UInt64?]()) { $0.append($1) }
        }
        #expect(outcomes.count { $0 == nil } == 2)
        #expect(Set(outcomes.compactMap { $0 }) == [1, 2])
    }

    @Test("a write that fails may have been executed, so what has read the record before is refused")
    func failed() async throws {
        let part = StateRelay<PartState>(.working)
        let storage = StoreAccountStorage(store: TestStore(memory: MemoryStore(), part: part))
        let versions = try await Self.version(of: "a", in: storage)
        part.update(.broken)
        await #expect(throws: (any Error).self) {
            try await storage.write(Self.changes("a", owner: "1"), expecting: versions)
        }
        part.update(.working)
        #expect(try await storage.write(Self.changes("a", owner: "2"), expecting: versions) == nil)
    }
}

import Testing
import Trebuchet

@testable import TrebuchetServices

@Suite("Records of accounts")
struct AccountRecordsTests {
    @Test("a sweep reports the number of accounts")
    func sweep() async throws {
        let store = MemoryStore()
        let records = AccountRecords(store) { Issue.record("\($0)") }
        #expect(try await records.deleteExpired(at: 0) == AccountCount())
        for id in ["a", "b", "c"] {
            var changes = AccountRecords.Changes()
            try changes.set(Account(email: "\(id)@b.c"), id: id)
            try await records.write(changes)
        }
        var changes = AccountRecords.Changes()
        try changes.set(Account(), id: "a guest without sessions")
        try await records.write(changes)
        #expect(try await records.deleteExpired(at: 0) == AccountCount(all: 3))
        #expect(try await records.account("a guest without sessions") == nil)
        #expect(try await records.account("b") == Account(email: "b@b.c"))
    }
}

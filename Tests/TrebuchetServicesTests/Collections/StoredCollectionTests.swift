import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices

@Suite("Collections in a store")
struct StoredCollectionTests {
    @Test("one that was never written begins at revision 0, without documents")
    func new() async throws {
        let table = try await StoredCollection("todos", in: MemoryStore()).load(CollectionLimits())
        #expect(table.revision == 0)
        #expect(table.isEmpty)
    }
}

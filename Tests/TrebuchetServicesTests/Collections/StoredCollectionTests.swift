import Testing
import Trebuchet

@testable import TrebuchetServices

@Suite("Collections in a store")
struct StoredCollectionTests {
    @Test("one that was never written begins at revision 0, without documents")
    func new() async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        let table = try await StoredCollection("todos", in: MemoryStore()).load(CollectionLimits(), at: server, now: 0)
        #expect(table.revision == 0)
        #expect(table.isEmpty)
    }
}

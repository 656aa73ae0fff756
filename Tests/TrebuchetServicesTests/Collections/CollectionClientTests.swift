import SharedState
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices

/// What a client is told of its own writes, and of what others have written.
@MainActor @Suite("Clients of collections", .timeLimit(.minutes(1))) struct CollectionClientTests {
    @Test("a condition counts also where its writer sees nothing to change")
    func nothingToChange() async throws {
        try await CollectionWorld.run { world in
            let (ada, bob) = (world.guest().todos(), world.guest().todos())
            try await ada.create(Todo(id: "1", title: "open"))
            await shows(bob) { $0.items.count == 1 }
            let isOpen = WriteCondition.field("title", equals: .string("open"))
            try await ada.update("1", if: isOpen) { $0.title = "Ada's" }
            await shows(bob) { $0.items[id: "1"]?.title == "Ada's" }
            let taken = CollectionError.conditionFailed(
                id: "1", revision: 2, found: ["title": .string("Ada's")])
            await #expect(throws: taken) { try await bob.update("1", if: isOpen) { $0.title = "Ada's" } }
            await #expect(throws: CollectionError.conditionFailed(id: "1", revision: 2, found: [:])) {
                try await bob.update("1", if: .revision(1)) { $0.title = "Ada's" }
            }
            await #expect(throws: TransactionError(index: 0, reason: taken)) {
                try await bob.transaction { todos in
                    try todos.update("1", if: isOpen) { $0.title = "Ada's" }
                    try todos.increment("1", "priority", by: 1)
                }
            }
            try await bob.update("1", if: .revision(2)) { $0.title = "Ada's" }
            #expect(bob.wrappedValue.items.elements == [Todo(id: "1", title: "Ada's")])
            #expect(bob.wrappedValue.document("1")?.revision == 2)
        }
    }
}

import Foundation
import SharedState
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices
@testable import TrebuchetServicesClient
@testable import TrebuchetServicesModel

/// The notifications of a client about its writes and about those of others.
@MainActor @Suite("Clients of collections", .timeLimit(.minutes(5))) struct CollectionClientTests {
    @Test("a condition is checked even if the write would change nothing for its writer")
    func nothingToChange() async throws {
        try await CollectionTestEnvironment.run { environment in
            let (ada, bob) = (environment.guest().todos(), environment.guest().todos())
            try await ada.create(Todo(id: "1", title: "open"))
            await shows(bob) { $0.items.count == 1 }
            let first = try #require(bob.wrappedValue.document("1")?.revision)
            let isOpen = WriteCondition.field("title", equals: .string("open"))
            try await ada.update("1", if: isOpen) { $0.title = "Ada's" }
            await shows(bob) { $0.items[id: "1"]?.title == "Ada's" }
            let taken = CollectionError.conditionFailed(
                id: "1", revision: first + 1, found: ["title": .string("Ada's")])
            await #expect(throws: taken) { try await bob.update("1", if: isOpen) { $0.title = "Ada's" } }
            await #expect(throws: CollectionError.conditionFailed(id: "1", revision: first + 1, found: [:])) {
                try await bob.update("1", if: .revision(first)) { $0.title = "Ada's" }
            }
            await #expect(throws: TransactionError(index: 0, reason: taken)) {
                try await bob.transaction { todos in
                    try todos.update("1", if: isOpen) { $0.title = "Ada's" }
                    try todos.increment("1", "priority", by: 1)
                }
            }
            try await bob.update("1", if: .revision(first + 1)) { $0.title = "Ada's" }
            #expect(bob.wrappedValue.items.elements == [Todo(id: "1", title: "Ada's")])
            #expect(bob.wrappedValue.document("1")?.revision == first + 1)
        }
    }

    // MARK: Documents that an app cannot read

    /// A later version of the document type in an app.
    private struct Voted: Codable, Identifiable, Equatable, Sendable {
        var id: String
        var votes = 0
        var place: [String: Int]?
    }

    private static func fields(_ members: JSONObject) -> DocumentCommand {
        .create(id: DocumentID(members["id"].flatMap { Document.id($0)?.text } ?? ""), fields: members)
    }

    private static let strange = [
        UnreadableDocument(id: "b", reason: "no member 'votes' (Int)"),
        UnreadableDocument(id: "c", reason: "its member 'votes' is not of type Int"),
        UnreadableDocument(id: "d", reason: "its member 'place.city' is not of type Int"),
        UnreadableDocument(id: "e", reason: "its member 'votes' is not of type Int"),
    ]

    private func write(strangeTo guest: CollectionTestClient) async throws {
        try await guest.client.connect()
        _ = try await guest.collection("voted").commit(
            [
                Self.fields(["id": .string("a"), "votes": .integer(1)]), Self.fields(["id": .string("b")]),
                Self.fields(["id": .string("c"), "votes": .string("one")]),
                Self.fields([
                    "id": .string("d"), "votes": .integer(1), "place": .object(["city": .string("Bonn")]),
                ]),
                Self.fields(["id": .string("e"), "votes": .number(1.5)]),
                Self.fields(["id": .string("f"), "votes": .integer(2)]),
            ], from: "0123456789abcdef")
    }

    @Test("a page has the documents that the app can decode, and lists the others with their problems")
    func pages() async throws {
        try await CollectionTestEnvironment.run { environment in
            let guest = environment.guest()
            try await write(strangeTo: guest)
            var (items, unreadable, cursor): ([Voted], [UnreadableDocument], String?) = ([], [], nil)
            repeat {
                let page = try await guest.backend.get(
                    CollectionKey<Voted>("voted"), CollectionQuery(limit: 2, after: cursor))
                items += page.items
                unreadable += page.unreadable
                cursor = page.cursor
            } while cursor != nil
            #expect(items == [Voted(id: "a", votes: 1), Voted(id: "f", votes: 2)])
            #expect(unreadable == Self.strange)
        }
    }

    @Test("a collection shows the documents that the app can decode, and lists the others with their problems")
    func unreadable() async throws {
        try await CollectionTestEnvironment.run { environment in
            let guest = environment.guest()
            try await write(strangeTo: guest)
            let voted: Shared<SyncedCollection<Voted>> = guest.backend.withCurrent {
                Shared(.trebuchetCollection(CollectionKey<Voted>("voted")), store: guest.store)
            }
            await shows(voted) { !$0.isLoading }
            #expect(voted.wrappedValue.items.ids == ["a", "f"])
            #expect(voted.wrappedValue.unreadable == Self.strange)
            #expect(
                voted.wrappedValue.readError.map { "\($0)" }
                    == "document 'b' does not decode: no member 'votes' (Int)")
            await #expect(throws: CollectionError.unreadable(id: "b", reason: "no member 'votes' (Int)")) {
                try await voted.update("b") { $0.votes = 1 }
            }
            try await voted.merge("b", ["votes": .integer(3)])
            await shows(voted) { $0.items.ids == ["a", "b", "f"] && $0.unreadable.map(\.id) == ["c", "d", "e"] }
        }
    }

    // MARK: Updates of documents that are not shown

    @Test("an update reports that no result has arrived yet, or that the query does not show the document")
    func notShown() async throws {
        try await CollectionTestEnvironment.run { environment in
            let ada = environment.guest().todos()
            for id in ["1", "2"] { try await ada.create(Todo(id: id)) }
            let link = try FaultyLink(to: environment.address, seed: 1)
            let guest = environment.guest(at: link.address)
            try await guest.client.connect()
            // No response of the server arrives before the link resumes.
            await link.pauseTraffic()
            let (all, first) = (guest.todos(), guest.todos(limit: 1))
            #expect(all.wrappedValue.isLoading)
            let early = all.update("1", onError: nil) { $0.isDone = true }
            await #expect(throws: CollectionError.notLoaded(id: "1")) { try await early.value }
            await #expect(throws: TrebuchetServices.CollectionError.notLoaded(id: "1")) {
                try await guest.todos(limit: 2).transaction { try $0.update("1") { $0.isDone = true } }
            }
            await link.resumeTraffic()
            all.increment("1", "priority", by: 1, onError: nil)
            await shows(all) { $0.items[id: "1"]?.priority == 1 && !$0.isSyncing }
            await shows(first) { !$0.isLoading && $0.hasMore }
            await #expect(throws: CollectionError.notAmongItems(id: "2")) {
                try await first.update("2") { $0.isDone = true }
            }
            await #expect(throws: CollectionError.notAmongItems(id: "2")) {
                try await first.transaction { try $0.update("2") { $0.isDone = true } }
            }
            try await first.merge("2", ["isDone": .bool(true)])
            await #expect(throws: CollectionError.notFound(id: "3")) { try await all.update("3") { $0.isDone = true } }
        }
    }

    // MARK: Writes that outlive the app

    @Test("a write refused after a restart is reported with its document and command; closing a client is no refusal")
    func lateRefusal() async throws {
        try await CollectionTestEnvironment.run { environment in
            let link = try FaultyLink(to: environment.address, seed: 1)
            let (folder, files) = (URL(fileURLWithPath: "/pending"), InMemoryFileStorage())
            let other = environment.guest("bob").todos()
            let first = CollectionTestClient("ada", at: link.address)
            first.backend.persistPendingWrites(in: folder, files: files)
            let before = first.todos()
            await shows(before) { !$0.isLoading }
            var errors: [String] = []
            try await link.refuseConnections {
                await link.disconnectAll()
                let transfer = before.transaction(onError: { errors.append("\($0)") }) { todos in
                    try todos.create(Todo(id: "2"))
                    try todos.merge("1", ["title": .string("Ada's")])
                }
                try await other.create(Todo(id: "1", title: "Bob's"))
                await first.client.close()
                await #expect(throws: CollectionError.persistedForLater) { try await transfer.value }
                let later = before.create(Todo(id: "3"), onError: nil)
                await #expect(throws: CollectionError.persistedForLater) { try await later.value }
            }
            #expect(errors == ["the client was closed; the write is persisted and sent after the next start"])
            let second = CollectionTestClient("ada", at: environment.address)
            second.backend.persistPendingWrites(in: folder, files: files)
            let after = second.todos()
            await shows(after) { $0.writeError != nil }
            #expect(
                after.wrappedValue.writeError as? WriteRejectedError
                    == WriteRejectedError(id: "1", command: "merge", reason: .forbidden(.update, id: "1")))
            await shows(after) { $0.items.ids == ["1", "3"] && !$0.isSyncing }
            await link.close()
        }
    }
}

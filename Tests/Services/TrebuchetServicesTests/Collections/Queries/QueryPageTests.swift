import SharedState
import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesClient
@testable import TrebuchetServicesModel

@Suite(.timeLimit(.minutes(5))) struct QueryPageTests {
    private static let secret = "0123456789abcdef"

    private func guest(_ environment: CollectionTestEnvironment, _ name: String = "ada") async throws
        -> CollectionTestClient
    {
        let guest = environment.guest(name)
        try await guest.client.connect()
        return guest
    }

    private func create(_ count: Int, _ guest: CollectionTestClient, size: Int = 1) async throws {
        for first in stride(from: 1, through: count, by: 32) {
            let commands = (first..<min(first + 32, count + 1)).map { number in
                DocumentMutation(
                    number: number,
                    command: .add(
                        DocumentID("d\(number)"),
                        ["n": .integer(Int64(number * 7 % 50)), "text": .string(String(repeating: "x", count: size))]))
            }
            for outcome in try await guest.collection().commit(commands, from: Self.secret) {
                #expect(outcome.error == nil)
            }
        }
    }

    @Test("a page that is encoded in slices has the text of one that is encoded at once", arguments: [0, 1, 10])
    func slices(count: Int) throws {
        let documents = (0..<count).map { Document.todo("d\($0)", ["n": .integer(Int64($0))]) }
        for (cursor, matches) in [(nil, nil), ("c", 3)] as [(String?, Int?)] {
            let page = QueryPage(documents: documents, cursor: cursor, count: matches, revision: 7)
            var encoder = PageEncoder(page)
            var slices = 1
            while !encoder.resume(until: ScanSlice(steps: 0)) { slices += 1 }
            #expect(slices == max(1, count))
            #expect(encoder.encoded().bytes == (try page.json()))
            var whole = PageEncoder(page)
            let isComplete = whole.resume(until: .unlimited)
            #expect(isComplete)
            #expect(whole.encoded().bytes == (try page.json()))
        }
    }

    @Test("the text of a page that waits is counted until the page is sent, and needs no room")
    func memory() async throws {
        var limits = CollectionLimits()
        for isLimited in [false, true] {
            if isLimited { limits.storedBytesPerConnection = 1_400_000 }
            try await CollectionTestEnvironment.run(limits: limits) { environment in
                let guest = try await guest(environment)
                try await create(800, guest, size: 1_200)
                var counted: Set<Int> = []
                for _ in 0..<3 {
                    let page = try await guest.collection().get(CollectionQuery(limit: 1_000))
                    #expect(page.documents.count > 500)
                    counted.insert(environment.host.memory.totalBytes)
                }
                #expect(counted.count == 1)
            }
        }
    }

    @Test("pages follow each other without duplicates or gaps, even if the last document of a page is deleted")
    func pages() async throws {
        try await CollectionTestEnvironment.run { environment in
            let guest = try await guest(environment)
            try await create(100, guest)
            let collection = try guest.collection()
            let all = try await collection.get(CollectionQuery(order: [.descending("n")]))
            #expect(all.documents.count == 100 && all.cursor == nil && all.count == nil)
            var (ids, cursor): ([DocumentID], String?) = ([], nil)
            var pages = 0
            repeat {
                let page = try await collection.get(
                    CollectionQuery(order: [.descending("n")], limit: 15, after: cursor, includesCount: true))
                #expect(page.count == 100 - pages)
                ids += page.documents.map(\.id)
                cursor = page.cursor
                pages += 1
                guard cursor != nil else { break }
                // The last document of the page is deleted: the next page starts at its position.
                let outcomes = try await collection.commit(
                    [DocumentMutation(number: 100 + pages, command: .delete(id: ids[ids.count - 1]))], from: Self.secret
                )
                #expect(outcomes[0].error == nil)
            } while true
            #expect(pages == 7 && ids == all.documents.map(\.id))
        }
    }

    @Test("a page is limited in bytes, whatever its limit, and the rest is in the next ones")
    func bytes() async throws {
        var limits = CollectionLimits()
        limits.pageBytes = 20_000
        try await CollectionTestEnvironment.run(limits: limits) { environment in
            let guest = try await guest(environment)
            try await create(40, guest, size: 2_000)
            let collection = try guest.collection()
            var (count, cursor): (Int, String?) = (0, nil)
            repeat {
                let page = try await collection.get(CollectionQuery(limit: 1_000, after: cursor))
                #expect(try JSONValue(encoding: page).byteCount <= 20_000 && !page.documents.isEmpty)
                count += page.documents.count
                cursor = page.cursor
            } while cursor != nil
            #expect(count == 40)
        }
    }

    /// Each user reads only documents that they have created.
    private struct OwnDocuments: CollectionRules {
        func isAllowed(
            _ principal: Principal?, _ action: CollectionAction, _ document: Document, in collection: String
        ) -> Bool { action != .read || document.creator == principal?.id }
    }

    @Test("a page contains and counts only readable documents")
    func rules() async throws {
        try await CollectionTestEnvironment.run(rules: OwnDocuments()) { environment in
            let (ada, eve) = (try await guest(environment), try await guest(environment, "eve"))
            try await create(5, ada)
            let own = try await ada.collection().get(CollectionQuery(limit: 2, includesCount: true))
            #expect(own.documents.count == 2 && own.count == 5 && own.cursor != nil)
            let none = try await eve.collection().get(CollectionQuery(after: own.cursor, includesCount: true))
            #expect(none.documents.isEmpty && none.count == 0 && none.cursor == nil)
        }
    }

    @Test("a live query after a cursor follows the changes there, and not those before it")
    @MainActor func liveBehind() async throws {
        try await CollectionTestEnvironment.run { environment in
            let (ada, bob) = (environment.guest(), environment.guest())
            let todos = ada.todos()
            for number in 1...6 { try await todos.create(Todo(id: "\(number)", priority: number)) }
            try await bob.client.connect()
            let order = [QueryOrder.ascending("priority")]
            let first = try await bob.collection().get(CollectionQuery(order: order, limit: 2))
            let second = bob.todos(order: order, limit: 2, after: first.cursor, counts: true)
            await shows(second) { $0.items.ids == ["3", "4"] && $0.hasMore && $0.count == 6 }
            try await todos.delete("2")
            try await todos.delete("3")
            await shows(second) { $0.items.ids == ["4", "5"] && $0.count == 4 }
            try await todos.delete("6")
            await shows(second) { $0.items.ids == ["4", "5"] && !$0.hasMore && $0.count == 3 }
        }
    }

    @Test("an oversized result is truncated and marked as such, and later documents move up")
    @MainActor func cut() async throws {
        var limits = CollectionLimits()
        limits.resultBytes = 2_000
        try await CollectionTestEnvironment.run(limits: limits) { environment in
            let (ada, bob) = (environment.guest().todos(), environment.guest().todos())
            for number in 1...8 {
                try await ada.create(Todo(id: "\(number)", title: String(repeating: "x", count: 300)))
            }
            await shows(bob) { $0.hasMore && $0.items.ids == ["1", "2", "3"] }
            try await ada.delete("2")
            await shows(bob) { $0.hasMore && $0.items.ids == ["1", "3", "4"] }
            for id in ["1", "3", "4", "5", "6"] { try await ada.delete(id) }
            await shows(bob) { !$0.hasMore && $0.items.ids == ["7", "8"] }
        }
    }
}

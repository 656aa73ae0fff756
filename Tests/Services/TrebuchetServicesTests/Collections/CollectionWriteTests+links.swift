import Synchronization
import TestSupport
import Testing
import Trebuchet

@testable import TrebuchetServices

extension CollectionWriteTests {
    @Test(
        "the collections of links are loaded eight at once, and the documents are checked again after a suspension"
    )
    func links() async throws {
        let store = SlowStore()
        try await CollectionTestEnvironment.run(store: store) { environment in
            let guest = try await connected(environment)
            let (todos, people) = (try guest.collection("todos"), try guest.collection("people"))
            _ = try await todos.commit([.add("1")], from: Self.secret)
            _ = try await people.commit([.add("ada"), .add("bob")], from: Self.secret)
            func link(_ id: String, _ collection: String) -> DocumentWrite {
                DocumentWrite(.link(id: "1", field: "who", target: .string(id), in: collection))
            }
            store.close()
            let invented = DocumentMutation(number: 2, writes: (0..<20).map { link("ada", "people\($0)") })
            let first = Task { try await todos.commit([invented], from: Self.secret) }
            #expect(await eventually { store.waitingCount == 8 })
            store.open()
            let missing = CollectionError.linkTargetMissing(id: "ada", collection: "people0")
            #expect(try await first.value.map(\.error) == [missing])
            // The documents are checked again after a suspension of the commit, here in a long mutation before the link.
            let local = try #require(environment.host.live.first { $0.name == "todos" }?.part)
            let values = JSONValue.array((0..<10_000).map { .integer($0) })
            _ = try await todos.commit([.add("long", ["l": values])], from: Self.secret, at: 3)
            for attempt in 0..<50 {
                let number = 10 * (attempt + 1)
                let writes = (0..<100).map {
                    let target = JSONValue.integer(Int64(10_000 + 100 * attempt + $0))
                    return DocumentWrite(.link(id: "long", field: "l", target: target))
                }
                let mutations = [
                    DocumentMutation(number: number, writes: writes),
                    DocumentMutation(number: number + 1, writes: [link("ada", "people")]),
                    DocumentMutation(number: number + 2, writes: [link("bob", "people")]),
                ]
                let isOver = Atomic(false)
                async let outcomes = {
                    defer { isOver.store(true, ordering: .relaxed) }
                    return try await todos.commit(mutations, from: Self.secret)
                }()
                while !isOver.load(ordering: .relaxed),
                    await local.whenLocal({ $0.commitsOfConnections.isEmpty }) == true
                { await Task.yield() }
                _ = try await people.commit([.delete(id: "ada")], from: Self.secret, at: number)
                let isDeletedInTime = !isOver.load(ordering: .relaxed)
                let errors = try await outcomes.map(\.error)
                if isDeletedInTime {
                    let gone = CollectionError.linkTargetMissing(id: "ada", collection: "people")
                    #expect(errors == [nil, gone, nil])
                    return
                }
                _ = try await people.commit([.add("ada")], from: Self.secret, at: number + 1)
            }
            Issue.record("the document was never deleted in time")
        }
    }

    @Test(
        "a commit that has waited for the reservation of another reads the documents of its links again",
        arguments: [true, false], [true, false])
    func linksAfterReservation(isFirst: Bool, isDeleted: Bool) async throws {
        try await CollectionTestEnvironment.run { environment in
            let guest = try await connected(environment)
            let (todos, people) = (try guest.collection("todos"), try guest.collection("people"))
            _ = try await todos.commit([.add("1"), .add("2")], from: Self.secret)
            _ = try await people.commit([.add("ada")], from: Self.secret)
            let part = try #require(environment.host.live.first { $0.name == "todos" }?.part)
            await part.whenLocal {
                let reservation = DocumentReservation()
                reservation.documents = ["1"]
                $0.reservation = reservation
            }
            // A mutation before it has read the documents already.
            let links = (isFirst ? ["1"] : ["2", "1"]).map {
                DocumentCommand.link(id: $0, field: "who", target: .string("ada"), in: "people")
            }
            async let outcomes = todos.commit(links, from: Self.secret, at: 3)
            #expect(await eventually { await part.whenLocal { $0.reservation?.waiters.count } == 1 })
            if isDeleted { _ = try await people.commit([.delete(id: "ada")], from: Self.secret, at: 2) }
            await part.whenLocal { $0.endReservation() }
            let missing = CollectionError.linkTargetMissing(id: "ada", collection: "people")
            #expect(try await outcomes.map(\.error) == (isFirst ? [] : [nil]) + [isDeleted ? missing : nil])
        }
    }
}

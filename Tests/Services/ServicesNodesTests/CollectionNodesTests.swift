import NodeSupport
import Platform
import SharedState
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetCluster

@testable import TrebuchetServices
@testable import TrebuchetServicesClient
@testable import TrebuchetServicesModel

/// Collections on several nodes in one process, with a coordination store in memory.
@MainActor @Suite(.timeLimit(.minutes(5))) struct CollectionNodesTests {
    @Test("all clients see writes through two nodes in one order, whichever node owns the collection")
    func throughBoth() async throws {
        try await withServices(["a", "b"]) { nodes in
            for collection in [nodes[0].collection, nodes[1].collection] {
                let values = try await [
                    App(nodes[0], as: "ada").notes(collection), App(nodes[1], as: "bob").notes(collection),
                ]
                let writers = values.enumerated().map { index, notes in
                    Task { for number in 0..<20 { try await notes.create(Note(id: "\(index).\(number)")) } }
                }
                for writer in writers { try await writer.value }
                for notes in values { await shows(notes) { $0.items.count == 40 && !$0.isSyncing } }
                #expect(values[0].wrappedValue.items == values[1].wrappedValue.items)
                await #expect(throws: CollectionError.forbidden(.delete, id: "0.1")) {
                    try await values[1].delete("0.1")
                }
            }
            #expect(nodes.map(\.collections.collectionCount) == [1, 1])
        }
    }

    @Test("queries with conditions are updated through another node than the owner of their collection")
    func queries() async throws {
        try await withServices(["a", "b", "c"]) { nodes in
            let collection = nodes[2].collection
            let (ada, bob) = try await (App(nodes[0], as: "ada"), App(nodes[1], as: "bob"))
            let all = ada.notes(collection)
            let open = bob.notes(
                collection, where: [.field("isDone", equals: .bool(false))], order: [.descending("text")])
            for (id, text) in [("1", "b"), ("2", "c"), ("3", "a")] { try await all.create(Note(id: id, text: text)) }
            await shows(open) { $0.items.map(\.id) == ["2", "1", "3"] }
            try await all.update("1") { $0.isDone = true }
            await shows(open) { $0.items.map(\.id) == ["2", "3"] }
            #expect(nodes.map(\.collections.queryCount) == [0, 0, 2])
            let page = try await bob.backend.get(
                CollectionKey<Note>(collection), CollectionQuery(order: [.ascending("text")], limit: 2))
            #expect(page.items.map(\.id) == ["3", "1"])
        }
    }

    @Test(
        "after an owner dies or drains under load, each acknowledged write exists once, and revisions continue",
        arguments: [true, false])
    func underLoad(dies: Bool) async throws {
        let engine = MemoryEngine()
        try await withServices(["a", "b", "c"], engine: engine) { nodes in
            let collection = nodes[2].collection
            let first = try await App(nodes[0], as: "ada").notes(collection)
            try await first.create(Note(id: "shared"))
            let done = AcknowledgedWrites()
            let values = try await [
                App(nodes[0], as: "ada").notes(collection), App(nodes[1], as: "ada").notes(collection),
            ]
            for notes in values { await shows(notes) { $0.items.count == 1 } }
            let writers = values.enumerated().map { index, notes in
                Task {
                    var number = 0
                    while !done.isOver {
                        number += 1
                        try await notes.create(Note(id: "\(index).\(number)"))
                        // A repeated increment would show in the sum.
                        try await notes.increment("shared", "count", by: 1)
                        done.add("\(index).\(number)", by: index)
                    }
                }
            }
            #expect(await eventually { done.counts.allSatisfy { $0 > 10 } })
            if dies { try await nodes[2].node.kill() } else { await nodes[2].node.server.shutdown(drain: .seconds(10)) }
            let before = done.counts
            #expect(await eventually { zip(done.counts, before).allSatisfy { $0 > $1 + 10 } })
            done.end()
            for writer in writers { try await writer.value }
            let all = done.all
            for notes in values + [first] {
                await shows(notes) {
                    Set($0.items.ids) == all.union(["shared"]) && !$0.isSyncing
                        // The last increment follows the last document.
                        && $0.document("shared")?.fields["count"] == .integer(Int64(all.count))
                }
            }
            for notes in values { #expect(notes.wrappedValue.items.ids == first.wrappedValue.items.ids) }
            let shared = try #require(first.wrappedValue.document("shared"))
            #expect(shared.fields["count"] == .integer(Int64(all.count)))
            // Each write has a unique revision, and the next owner continues after the last one.
            let page = try await App(nodes[0]).collection(collection).get(CollectionQuery())
            let revisions = page.documents.map(\.revision)
            #expect(Set(revisions).count == revisions.count && revisions.max() == shared.revision)
            let owner = try #require(nodes[..<2].first { $0.node.owns("collections/\(collection)") })
            #expect(
                await eventually {
                    owner.collections.collectionCount == 1 && nodes[2].collections.collectionCount == 0
                })
        }
    }

    @Test(
        "writes that wait for a connection are sent once, through another node, although the collection's owner has died"
    )
    func offline() async throws {
        try await withServices(["a", "b"]) { nodes in
            let collection = nodes[0].collection
            let app = try await App(nodes[0], nodes[1], as: "ada")
            let notes = app.notes(collection)
            try await notes.create(Note(id: "0"))
            try await nodes[0].node.kill()
            for number in 1...10 {
                notes.create(Note(id: "\(number)"), onError: { Issue.record($0) })
                notes.increment("0", "count", by: 1, onError: { Issue.record($0) })
            }
            let other = try await App(nodes[1], as: "bob").notes(collection)
            await shows(other) { $0.items.count == 11 && $0.document("0")?.fields["count"] == .integer(10) }
            await shows(notes) { !$0.isSyncing && $0.items.count == 11 }
            #expect(other.wrappedValue.items.ids == (0...10).map { "\($0)" })
        }
    }

    @Test("a link to a document in a collection of another node is checked against its latest writes")
    func links() async throws {
        try await withServices(["a", "b"]) { nodes in
            let (from, to) = (nodes[0].collection, nodes[1].collection)
            let app = try await App(nodes[0], as: "ada")
            let (notes, people) = (app.notes(from), app.notes(to))
            try await notes.create(Note(id: "1"))
            await #expect(throws: CollectionError.linkTargetMissing(id: "ada", collection: to)) {
                try await notes.link("1", "tags", to: "ada", in: to)
            }
            for id in ["ada", "bob", "carl"] {
                try await people.create(Note(id: id))
                try await notes.link("1", "tags", to: id, in: to)
            }
            try await people.delete("bob")
            await #expect(throws: CollectionError.linkTargetMissing(id: "bob", collection: to)) {
                try await notes.link("1", "tags", to: "bob", in: to)
            }
            await shows(notes) { $0.items.first?.tags == ["ada", "bob", "carl"] }
        }
    }

    @Test("a commit that waits when the lease ends is not executed, and a repeat finds the one already written")
    func leaseEnds() async throws {
        let clock = ManualEngineClock()
        let engine = MemoryEngine(clock: clock)
        let engineRoute = FaultyEngine(engine)
        let node = try ServiceNode("a", engine, through: engineRoute, clock: clock)
        try await Node.with([node.node]) {
            let collection = try await App(node, as: "ada").collection("c")
            let secrets = (0...2).map { "a client of ada's, \($0)" }
            let begun = try #require(try await collection.commit([.add("0")], from: secrets[0], at: 1).first?.revision)
            engineRoute.set { $0.hangsAnswers = true }
            var commits = [Task { try await collection.commit([.add("1")], from: secrets[1], at: 1) }]
            #expect(await eventually { engineRoute.unansweredCount == 1 })
            commits.append(Task { try await collection.commit([.add("2")], from: secrets[2], at: 1) })
            let part = try #require(node.collections.live.first?.part)
            #expect(await eventually { await part.whenLocal { $0.table.unwrittenCount } == 2 })
            engineRoute.set { ($0.failsRenewals, $0.givesNoSlots) = (true, true) }
            clock.advance(by: Node.settings.leaseDuration)
            #expect(await eventually { node.node.member.slotCount == 0 })
            #expect(await eventually { node.collections.collectionCount == 0 })
            engineRoute.set { $0 = .init() }
            var errors: [CollectionError?] = []
            for commit in commits {
                errors.append(await #expect(throws: CollectionError.self) { try await commit.value })
            }
            guard case .unknownOutcome? = errors[0] else {
                Issue.record("\(errors)")
                return
            }
            #expect(errors[1] == .closed)
            let second = try await collection.commit([.add("2")], from: secrets[2], at: 1)
            let first = try await collection.commit([.add("1")], from: secrets[1], at: 1)
            #expect(first.map(\.error) == [nil] && second.map(\.error) == [nil])
            #expect(first.map(\.revision) == [begun + 1] && second[0].revision > begun + 1)
            #expect(try await collection.get(CollectionQuery()).documents.map(\.id) == ["0", "1", "2"])
        }
    }

    @Test("acknowledged writes of a collection survive a coordination store that returns with an older log")
    func olderLog() async throws {
        let engine = MemoryEngine()
        let node = try ServiceNode("a", engine)
        try await Node.with([node.node]) {
            let collection = try await App(node, as: "ada").collection("c")
            for number in 1...4 {
                _ = try await collection.commit([.add("\(number)")], from: "a client of ada's", at: number)
            }
            engine.loseNewest(2, of: ClusterLog("collections/c"))
            let outcomes = try await collection.commit([.add("5")], from: "a client of ada's", at: 5)
            #expect(outcomes.map(\.error) == [nil])
            #expect(try await collection.get(CollectionQuery()).documents.map(\.id) == ["1", "2", "3", "4", "5"])
        }
        // The next owner reads them.
        let next = try ServiceNode("b", engine)
        try await Node.with([next.node]) {
            let collection = try await App(next, as: "ada").collection("c")
            #expect(try await collection.get(CollectionQuery()).documents.map(\.id) == ["1", "2", "3", "4", "5"])
        }
    }

    @Test("a condition on a revision of a lost collection matches none of the next writes")
    func lostWhole() async throws {
        var revisions: [Int] = []
        for _ in 0..<2 {
            // The second coordination store has no data of the first.
            let node = try ServiceNode("a", MemoryEngine())
            try await Node.with([node.node]) {
                let collection = try await App(node, as: "ada").collection("c")
                let outcomes = try await collection.commit([.add("1")], from: "a client of ada's", at: 1)
                revisions += outcomes.map(\.revision)
            }
        }
        #expect(revisions.count == 2 && revisions[0] < revisions[1])
    }

    @Test("a former owner whose write failed writes nothing more; the collection continues at its next owner")
    func lostLease() async throws {
        let engine = MemoryEngine()
        let faulty = FaultyEngine(engine)
        var settings = Node.settings
        settings.handoverTimeout = .milliseconds(300)
        let (first, second) = (
            try ServiceNode("a", engine, through: faulty, settings: settings),
            try ServiceNode("b", engine, settings: settings)
        )
        try await first.node.start()
        #expect(await Node.ownAll([first.node]))
        let names = (0..<24).map { "c\($0)" }
        let app = try await App(first, as: "ada")
        var begun: [String: Int] = [:]
        for name in names {
            let outcomes = try await app.collection(name).commit([.add("1")], from: "a client of ada's, \(name)", at: 1)
            begun[name] = try #require(outcomes.first?.revision)
        }
        faulty.set { $0.failsAppends = true }
        for name in names {
            await #expect(throws: CollectionError.self) {
                try await app.collection(name).commit([.add("2")], from: "a client of ada's, \(name)", at: 2)
            }
        }
        try await second.node.start()
        #expect(await Node.ownAll([first.node, second.node]))
        faulty.set { $0.failsAppends = false }
        for name in names {
            let collection = try app.collection(name)
            // A repeat with these numbers: executed mutations are recognized, the others are executed.
            let outcomes = try await collection.commit(
                [.add("1"), .add("2")], from: "a client of ada's, \(name)", at: 1)
            #expect(outcomes.map(\.error) == [nil, nil], "\(name)")
            // A revision whose write failed is not reused, neither by this owner nor by the next one.
            let first = try #require(begun[name])
            #expect(outcomes[0].revision == first && outcomes[1].revision > first + 1, "\(name)")
        }
        #expect(second.collections.collectionCount > 0)
        try await second.node.kill()
        for name in names {
            let page = try await app.collection(name).get(CollectionQuery())
            #expect(page.documents.map(\.id) == ["1", "2"], "\(name)")
        }
        await first.node.stop()
    }

    @Test("a transaction larger than a log entry is refused, and other writes continue")
    func tooLarge() async throws {
        try await withServices(["a", "b"]) { nodes in
            let app = try await App(nodes[0], as: "ada")
            let collection = try app.collection(nodes[1].collection)
            let text = String(repeating: "x", count: 60_000)
            // Larger than an entry in total: the documents are written in parts.
            try await withThrowingTaskGroup(of: Void.self) { group in
                for part in 0..<4 {
                    group.addTask {
                        let large = (0..<10).map { number in
                            DocumentMutation(
                                number: number + 1,
                                command: .add(DocumentID("\(part).\(number)"), ["text": .string(text)]))
                        }
                        let outcomes = try await collection.commit(large, from: "a client of ada's, \(part)")
                        #expect(outcomes.allSatisfy { $0.error == nil })
                    }
                }
                try await group.waitForAll()
            }
            let transaction = DocumentMutation(
                number: 1,
                writes: (0..<10).map {
                    DocumentWrite(.update(id: DocumentID("0.\($0)"), fields: ["isDone": .bool(true)]))
                })
            let outcome = try #require(try await collection.commit([transaction], from: "a client of ada's").first)
            guard case .documentTooLarge(_, _, limit: DocumentTable.maximumBatchCount) = outcome.error else {
                Issue.record("\(String(describing: outcome.error))")
                return
            }
            let next = DocumentMutation(number: 2, command: .add("next"))
            #expect(try await collection.commit([next], from: "a client of ada's").first?.error == nil)
        }
    }
}

/// The acknowledged writes of two writers.
final class AcknowledgedWrites: Sendable {
    private let state = Mutex<(ids: [Set<String>], isOver: Bool)>(([[], []], false))

    var isOver: Bool { state.withLock { $0.isOver } }
    var counts: [Int] { state.withLock { $0.ids.map(\.count) } }
    var all: Set<String> { state.withLock { $0.ids[0].union($0.ids[1]) } }
    func end() { state.withLock { $0.isOver = true } }
    func add(_ id: String, by writer: Int) { state.withLock { _ = $0.ids[writer].insert(id) } }
}

extension App {
    func collection(_ name: String) throws -> DocumentCollection {
        try client.resolve(DocumentCollection.self, id: "collections/\(name)")
    }
}

extension DocumentCommand {
    static func add(_ id: DocumentID, _ fields: JSONObject = [:]) -> DocumentCommand {
        var fields = fields
        fields["id"] = .string(id.text)
        return .create(id: id, fields: fields)
    }
}

extension DocumentCollection {
    /// Bypasses the client's queue and its checks.
    nonisolated func commit(
        _ mutations: [DocumentMutation], from client: String
    ) async throws -> [MutationOutcome] {
        try await commit(mutations.map { EncodedJSON($0.value) }, from: client)
    }

    nonisolated func commit(
        _ commands: [DocumentCommand], from client: String, at first: Int
    ) async throws -> [MutationOutcome] {
        try await commit(
            commands.enumerated().map { DocumentMutation(number: first + $0, command: $1) }, from: client)
    }
}

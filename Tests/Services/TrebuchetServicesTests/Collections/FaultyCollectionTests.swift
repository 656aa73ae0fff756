import Foundation
import Platform
import SharedState
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices
@testable import TrebuchetServicesModel

/// Two clients edit one collection over links that are cut, stalled, delayed and split, as determined by a seed.
@MainActor @Suite(.timeLimit(.minutes(5))) struct FaultyCollectionTests {
    nonisolated private static let seeds: ClosedRange<UInt64> =
        ProcessInfo.processInfo.environment["TREBUCHET_LONG_TESTS"] == "1" ? 1...60 : 1...6

    private static let faults: FaultyLink.Faults = {
        var faults = FaultyLink.Faults.harsh
        faults.cutAfterBytes = 300...6_000
        return faults
    }()

    @Test(
        "both clients end with the server's documents, and each acknowledged write is executed once", arguments: seeds)
    func seed(_ seed: UInt64) async throws {
        let store = MemoryStore()
        try await CollectionTestEnvironment.run(store: store) { environment in
            let third = environment.guest().todos()
            try await third.create(Todo(id: "shared"))
            var links: [FaultyLink] = []
            var values: [Shared<SyncedCollection<Todo>>] = []
            for index in 0..<2 {
                let link = try FaultyLink(to: environment.address, seed: seed * 2 + UInt64(index), faults: Self.faults)
                links.append(link)
                values.append(environment.guest(at: link.address).todos())
            }
            for value in values { await shows(value) { $0.items.count == 1 } }
            var random = RandomSource(seed: seed)
            var created: [Set<String>] = [[], []]
            var failures: [String] = []
            var settled = 0
            var calls: [OperationCall<Void>] = []
            for step in 0..<60 {
                for (index, todos) in values.enumerated() {
                    let onError: @MainActor (any Error) -> Void = { failures.append("\($0)") }
                    let onSettled: @MainActor (Result<Void, any Error>) -> Void = { _ in settled += 1 }
                    let own = created[index].sorted().randomElement(using: &random)
                    switch Int.random(in: 0..<6, using: &random) {
                    case 0, 1:
                        let id = "\(index).\(step)"
                        created[index].insert(id)
                        calls.append(todos.create(Todo(id: id), onError: onError, onSettled: onSettled))
                    case 2 where own != nil:
                        created[index].remove(own!)
                        calls.append(todos.delete(own!, onError: onError, onSettled: onSettled))
                    case 3 where own != nil:
                        calls.append(
                            todos.update(own!, onError: onError, onSettled: onSettled) { $0.priority += 1 })
                    default:
                        // Each link is evidence of an executed write.
                        calls.append(
                            todos.link("shared", "tags", to: "\(index).\(step)", onError: onError, onSettled: onSettled)
                        )
                    }
                }
                if step % 7 == 0 { await Task.yield() }
            }
            for call in calls { _ = try? await call.value }
            #expect(failures == [], "no other client writes these documents; seed \(seed)")
            #expect(settled == calls.count, "seed \(seed)")
            await shows(third) { Set($0.items.ids) == created[0].union(created[1]).union(["shared"]) }
            let stored = try await StoredCollection("todos", in: store).load(
                CollectionLimits(), at: environment.server, now: 0)
            let end = try stored.documents.values.map { try $0.value.decode(Todo.self) }.sorted { $0.id < $1.id }
            for value in values + [third] {
                await shows(value) { $0.items.sorted { $0.id < $1.id } == end && !$0.isSyncing }
            }
            #expect(links.map(\.counters.accepted).reduce(0, +) > 2, "the links were cut; seed \(seed)")
            for link in links { await link.close() }
        }
    }

    @Test("collections of two servers do not overwrite each other's documents in one store")
    func oneStore() async throws {
        let store = MemoryStore()
        let first = try await CollectionTestEnvironment.begin(store: store)
        let second = try await CollectionTestEnvironment.begin(store: store)
        let guests = [first.guest("ada"), second.guest("bob")]
        for guest in guests { try await guest.client.connect() }
        _ = try await guests[0].collection().commit(
            [DocumentMutation(number: 1, command: .add("1"))], from: "a client of ada's")
        guests[1].client.register(errors: CollectionError.self)
        let error = await #expect(throws: CollectionError.self) {
            _ = try await guests[1].collection().commit(
                [DocumentMutation(number: 1, command: .add("2"))], from: "a client of bob's")
        }
        #expect(error.map { "\($0)".contains("in use by another server") } == true, "\(String(describing: error))")
        await guests[0].client.close()
        await first.server.shutdown(drain: .zero)
        _ = try await guests[1].collection().commit(
            [DocumentMutation(number: 1, command: .add("2"))], from: "a client of bob's")
        await guests[1].client.close()
        await second.server.shutdown(drain: .zero)
    }

    @Test("an undecodable stored document is reported in the log, and clients get an error number")
    func undisclosed() async throws {
        let store = MemoryStore()
        try await store.put(Array(#"{"password":"pa55word"}"#.utf8), StateKey("collection.todos", "document/1"))
        try await CollectionTestEnvironment.run(store: store) { environment in
            let guest = environment.guest("ada")
            try await guest.client.connect()
            guest.client.register(errors: CollectionError.self)
            let error = await #expect(throws: CollectionError.self) {
                _ = try await guest.collection().commit(
                    [DocumentMutation(number: 1, command: .add("2"))], from: "a client of ada's")
            }
            let text = error.map { "\($0)" } ?? ""
            #expect(text.contains("see the server log") && !text.contains("pa55word"), "\(text)")
            await guest.client.close()
        }
    }

    @Test("acknowledged writes survive the replacement of the server, and writes made meanwhile follow")
    func restartedServer() async throws {
        let store = MemoryStore()
        let first = try await CollectionTestEnvironment.begin(store: store)
        let guest = first.guest("ada")
        let todos = guest.todos()
        try await todos.create(Todo(id: "1", title: "kept"))
        try await todos.create(Todo(id: "2"))
        try await todos.delete("2")
        await first.server.shutdown(drain: .zero)
        todos.update("1", onError: nil) { $0.isDone = true }
        let second = try await CollectionTestEnvironment.begin(store: store, port: first.address.port)
        await shows(todos) { !$0.isSyncing && $0.items.elements == [Todo(id: "1", title: "kept", isDone: true)] }
        #expect(!todos.wrappedValue.isError, "the creator is decoded again")
        let other = second.guest("bob").todos()
        await shows(other) { $0.items.elements == [Todo(id: "1", title: "kept", isDone: true)] }
        try await todos.create(Todo(id: "3"))
        await shows(other) { $0.items.ids == ["1", "3"] }
        await guest.client.close()
        await second.server.shutdown(drain: .zero)
    }
}

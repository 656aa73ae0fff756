import SharedState
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices
@testable import TrebuchetServicesClient

/// Documents with an expiry.
extension CollectionWriteTests {
    @Test("an expired document disappears for readers and writers immediately, and the timer visits no other document")
    func expiry() async throws {
        let time = ManualTime(1_000)
        try await CollectionTestEnvironment.run(clock: time.clock) { environment in
            let (ada, bob) = (accounts(environment.guest()), accounts(environment.guest()))
            try await ada.create(ConditionalWriteAccount(id: "stays"))
            try await ada.create(ConditionalWriteAccount(id: "goes"), expiresIn: .seconds(10))
            try await ada.create(ConditionalWriteAccount(id: "first"), expiresIn: .seconds(5))
            await shows(bob) { $0.items.count == 3 }
            #expect(bob.wrappedValue.document("goes")?.expiryMilliseconds == 11_000)
            #expect(await eventually { time.sleeperCount == 1 })
            time.move(to: 5_999)
            try await ada.update("stays") { $0.balance = 1 }
            await shows(bob) { $0.items[id: "stays"]?.balance == 1 }
            #expect(bob.wrappedValue.items.count == 3)
            time.move(to: 6_000)
            await shows(bob) { $0.items.ids == ["stays", "goes"] }
            await shows(ada) { $0.items.ids == ["stays", "goes"] }
            try await ada.expire("goes", in: .seconds(100))
            try await ada.expire("stays", in: .seconds(1))
            await shows(ada) { !$0.isSyncing }
            time.move(to: 11_000)
            await shows(bob) { $0.items.ids == ["goes"] }
            try await ada.expire("goes", in: nil)
            time.move(to: 1_000_000)
            try await ada.create(ConditionalWriteAccount(id: "stays", balance: 7))
            await shows(bob) { $0.items.ids == ["goes", "stays"] }
            await #expect(throws: CollectionError.notFound(id: "first")) {
                try await ada.increment("first", "balance", by: 1)
            }
        }
    }

    @Test("one task removes expired documents, however many calls ask for it")
    func manyExpire() async throws {
        let time = ManualTime(1_000)
        var limits = CollectionLimits()
        limits.writesPerConnection = RateLimit(callsPerSecond: 10_000, burst: 10_000)
        limits.writesPerHost = limits.writesPerConnection
        try await CollectionTestEnvironment.run(limits: limits, clock: time.clock, reactors: 1) { world in
            let guest = world.guest()
            try await guest.client.connect()
            let todos = try guest.collection()
            for part in 0..<2 {
                let mutations = (0..<25).map { number in
                    DocumentMutation(
                        number: number + 1,
                        writes: (0..<100).map {
                            let id = "\(part)-\(number)-\($0)"
                            return DocumentWrite(
                                .create(
                                    id: DocumentID(id), fields: ["id": .string(id)], expiresIn: .seconds(5)))
                        })
                }
                let outcomes = try await todos.commit(mutations, from: "0123456789abcde\(part)")
                #expect(outcomes.count == 25 && outcomes.allSatisfy { $0.error == nil })
            }
            let local = try #require(world.host.live.first { $0.name == "todos" }?.part)
            let isLocal: Void? = await local.whenLocal { collection in
                time.move(to: 6_000)
                collection.expire()
                let task = collection.expiring
                for _ in 0..<4 { collection.expire() }
                #expect(collection.table.documents.count == 5_000 - 5 * 500)
                #expect(task != nil && collection.expiring == task)
                while let current = collection.expiring {
                    // A second task would replace the first one.
                    #expect(current == task)
                    await Task.yield()
                }
                #expect(collection.table.documents.isEmpty)
            }
            #expect(isLocal != nil)
        }
    }

    @Test("documents that expire while their server is down are never shown again, and are deleted from the store")
    func expiryAfterRestart() async throws {
        let (store, time) = (MemoryStore(), ManualTime(1_000))
        try await CollectionTestEnvironment.run(store: store, clock: time.clock) { environment in
            let ada = accounts(environment.guest())
            try await ada.create(ConditionalWriteAccount(id: "goes"), expiresIn: .seconds(10))
            try await ada.create(ConditionalWriteAccount(id: "stays"), expiresIn: .seconds(100))
        }
        time.move(to: 11_000)
        try await CollectionTestEnvironment.run(store: store, clock: time.clock) { environment in
            let ada = accounts(environment.guest())
            await shows(ada) { !$0.isLoading }
            #expect(ada.wrappedValue.items.ids == ["stays"])
            #expect(
                await eventually {
                    (try? await StoredCollection.usage(of: "collection.accounts", in: store))?.entries == 1
                })
            time.move(to: 101_000)
            await shows(ada) { $0.items.isEmpty }
        }
    }

    @Test("a collection may set an expiry for documents without one")
    func lifetime() async throws {
        var limits = CollectionLimits()
        limits.documentLifetime = .seconds(60)
        limits.documentLifetimes = ["accounts": .seconds(10)]
        let time = ManualTime(0)
        try await CollectionTestEnvironment.run(limits: limits, clock: time.clock) { environment in
            let guest = try await connected(environment)
            for (name, expected) in [("accounts", 10_000), ("todos", 60_000)] {
                _ = try await guest.collection(name).commit(
                    [.add("1"), .create(id: "2", fields: ["id": .string("2")], expiresIn: .seconds(1))],
                    from: Self.secret)
                let ticket = try await guest.collection(name).open(.all)
                let view = try guest.client.resolve(CollectionView.self, id: ticket.view)
                for await result in await view.observeResult() {
                    #expect(result.documents.map(\.expiryMilliseconds) == [expected, 1_000])
                    break
                }
            }
        }
    }
}

import SharedState
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices
@testable import TrebuchetServicesClient
@testable import TrebuchetServicesModel

/// An actor type with methods that no collection has.
@Trebuchet distributed actor UnrelatedClient {
    distributed func dance() -> Int { 1 }
}

@MainActor @Suite("Quotas of collections", .timeLimit(.minutes(5))) struct CollectionShareTests {
    private static let secret = "0123456789abcdef"

    /// A table into which many creators put documents.
    private struct Bench {
        var table: DocumentTable
        private var number = 0

        init(_ limits: CollectionLimits) { table = DocumentTable(limits: limits) }

        mutating func perform(_ command: DocumentCommand, as creator: String? = nil, from origin: UInt32? = nil)
            -> CollectionError?
        {
            number += 1
            return table.apply(
                DocumentMutation(number: number, command: command), from: "a client", creator: creator, origin: origin,
                at: 0
            ) { _, _ in true }.error
        }

        /// The number of documents that one creator can create.
        mutating func fill(as creator: String? = nil, from origin: UInt32? = nil) -> (count: Int, CollectionError?) {
            var count = 0
            while true {
                let id = DocumentID("\(creator ?? "")-\(origin ?? 0)-\(number)")
                if let error = perform(.add(id), as: creator, from: origin) { return (count, error) }
                count += 1
            }
        }
    }

    private var limits: CollectionLimits {
        var limits = CollectionLimits()
        limits.documentsPerCollection = 1_600
        return limits
    }

    @Test(
        "a quota of the whole is none, and a quota of one half is at least half of it",
        arguments: [(1, 100), (2, 50), (3, 50)])
    func parts(share: Int, count: Int) {
        var limits = CollectionLimits()
        limits.documentsPerCollection = 100
        limits.principalQuotaDivisor = share
        var bench = Bench(limits)
        #expect(bench.fill(as: "ada").count == count)
    }

    @Test("one creator may fill half of a collection, and later ones find room; a sixteenth is guaranteed")
    func documents() {
        var bench = Bench(limits)
        #expect(
            bench.fill(as: "0") == (800, .shareUsedUp(of: "documents", limit: 799, setting: "principalQuotaDivisor")))
        let counts = (1..<30).map { bench.fill(as: "\($0)").count }
        #expect(counts.prefix(3) == [400, 200, 100] && counts.prefix(4).allSatisfy { $0 >= 100 })
        #expect(counts.reduce(800, +) == 1_600)
        #expect(bench.fill(as: "late").1 == .tooManyDocuments(limit: 1_600))
        // Deleted documents make room.
        for number in 0..<200 { #expect(bench.perform(.delete(id: "0-0-\(number)")) == nil) }
        #expect(bench.fill(as: "0").count == 0)
        #expect(bench.fill(as: "late").count == 100)
    }

    @Test("principals of one host share the quota of the host, and so do anonymous callers")
    func hosts() {
        var bench = Bench(limits)
        #expect(bench.fill(from: 1) == (800, .shareUsedUp(of: "documents", limit: 799, setting: "hostQuotaDivisor")))
        for guest in 0..<20 { #expect(bench.fill(as: "guest \(guest)", from: 1).count == 0) }
        #expect(bench.fill(as: "ada", from: 2).count == 400)
        var open = limits
        (open.principalQuotaDivisor, open.hostQuotaDivisor) = (1, 1)
        var all = Bench(open)
        #expect(all.fill(as: "ada", from: 1) == (1_600, .tooManyDocuments(limit: 1_600)))
        // Documents without principal and host, from this machine, have no quota.
        var own = Bench(limits)
        #expect(own.fill() == (1_600, .tooManyDocuments(limit: 1_600)))
    }

    @Test("bytes have quotas as documents have, and later content of a document counts for its creator")
    func bytes() {
        var limits = limits
        limits.collectionBytes = 160_000
        var bench = Bench(limits)
        let text = JSONValue.string(String(repeating: "x", count: 8_000))
        var count = 0
        while bench.perform(.add("\(count)", ["t": text]), as: "ada") == nil { count += 1 }
        #expect(count == 9)
        #expect(bench.perform(.update(id: "0", fields: ["u": text]), as: "bob") != nil)
        #expect(
            bench.perform(.update(id: "0", fields: ["t": .null]), as: "bob") == nil,
            "reducing the size is always possible")
        #expect(bench.perform(.add("b", ["t": text]), as: "bob") == nil)
        // A failed transaction reserves nothing.
        let before = bench.table.shares.all
        for _ in 0..<50 { #expect(bench.perform(.add("0"), as: "bob") != nil) }
        #expect(bench.table.shares.all == before && bench.table.shares.scopeCount == 2)
        bench.table.discardUnwritten()
        #expect(bench.table.shares.all == DocumentQuotas.Usage() && bench.table.shares.scopeCount == 0)
    }

    @Test("a document's creator and host are known after a restart, and readers do not see the host")
    func restart() async throws {
        let store = MemoryStore()
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        let stored = StoredCollection("todos", in: store)
        var table = try await stored.load(limits, at: server, now: 0)
        for (number, creator) in ["ada", nil].enumerated() {
            let outcome = table.apply(
                DocumentMutation(number: number + 1, command: .add("\(number)")), from: Self.secret, creator: creator,
                origin: 7, at: 0
            ) { _, _ in true }
            #expect(outcome.error == nil)
        }
        let unwritten = table.beginWrite()
        let batch = try #require(unwritten)
        try await stored.write(batch, over: table.contents(at: 0))
        _ = table.endWrite(batch)
        let again = try await stored.load(limits, at: server, now: 0)
        #expect(again.shares.all == table.shares.all && again.shares.scopeCount == 2)
        #expect(again.document("1")?.origin == 7 && again.documents == table.documents)
        #expect(again.secret == table.secret, "otherwise the hashes of hosts would differ")
        let document = try #require(again.document("1"))
        #expect(!String(decoding: try document.json(), as: UTF8.self).contains("origin"))
        #expect(!String(decoding: try JSONValue(encoding: document).json, as: UTF8.self).contains("origin"))
    }

    @Test("an unused collection makes room for another; one with readers does not")
    func room() async throws {
        var limits = CollectionLimits()
        limits.collections = 2
        try await CollectionTestEnvironment.run(limits: limits) { environment in
            let guest = environment.guest("ada")
            try await guest.client.connect()
            // Each with a document, so that it stays in memory.
            for number in 0..<20 {
                let outcomes = try await guest.collection("c\(number)").commit([.add("x")], from: Self.secret)
                #expect(outcomes.map(\.error) == [nil])
                #expect(environment.host.collectionCount <= 2)
            }
            for name in ["c0", "c1"] { _ = try await guest.collection(name).open(.all) }
            await #expect(throws: CollectionError.tooManyCollections(limit: 2)) {
                _ = try await guest.collection("c2").open(.all)
            }
            // Acknowledged documents are there, however often the collection was unloaded.
            let outcomes = try await guest.collection("c0").commit([.add("x")], from: Self.secret, at: 2)
            #expect(outcomes.map(\.error) == [.alreadyExists(id: "x")])
        }
    }

    @Test("calls with invented names unload collections of their caller, and none of another one")
    func inventedNames() async throws {
        var limits = CollectionLimits()
        limits.collections = 4
        try await CollectionTestEnvironment.run(limits: limits) { environment in
            let (ada, eve) = (environment.guest("ada"), environment.guest("eve"))
            try await ada.client.connect()
            try await eve.client.connect()
            _ = try await ada.collection("mine").commit([.add("x")], from: Self.secret)
            for number in 0..<3 {
                _ = try await eve.collection("c\(number)").commit([.add("x")], from: Self.secret)
            }
            await withTaskGroup { group in
                for number in 0..<20 {
                    // Calls that find no room for their collections are refused.
                    group.addTask { try? await eve.collection("invented\(number)").get(CollectionQuery()).documents }
                }
                for await documents in group { #expect(documents?.isEmpty ?? true) }
            }
            #expect(environment.host.live.contains { $0.name == "mine" })
            #expect(environment.host.live.count { $0.name.hasPrefix("c") } < 3)
        }
    }

    @Test("a link loads the collection of its target, and is refused if the limit of collections is reached")
    func links() async throws {
        let store = MemoryStore()
        try await CollectionTestEnvironment.run(store: store) { environment in
            let guest = environment.guest("ada")
            try await guest.client.connect()
            _ = try await guest.collection("people").commit([.add("ada")], from: Self.secret)
        }
        func link(_ target: String) -> DocumentCommand {
            .link(id: "1", field: "who", target: .string(target), in: "people")
        }
        try await CollectionTestEnvironment.run(store: store) { environment in
            let guest = environment.guest("ada")
            try await guest.client.connect()
            let outcomes = try await guest.collection("todos").commit(
                [.add("1"), link("ada"), link("eve")], from: Self.secret)
            #expect(outcomes.map(\.error) == [nil, nil, .linkTargetMissing(id: "eve", collection: "people")])
        }
        var limits = CollectionLimits()
        limits.collections = 1
        try await CollectionTestEnvironment.run(store: store, limits: limits) { environment in
            let guest = environment.guest("ada")
            try await guest.client.connect()
            _ = try await guest.collection("todos").open(.all)
            await #expect(throws: CollectionError.tooManyCollections(limit: 1)) {
                _ = try await guest.collection("todos").commit([link("ada")], from: Self.secret, at: 4)
            }
        }
    }

    @Test("a collection with documents is unloaded when its idle time has passed without use")
    func idle() async throws {
        let time = ManualTime(0)
        var limits = CollectionLimits()
        limits.idleTime = .seconds(300)
        limits.idleQueryTime = .zero
        try await CollectionTestEnvironment.run(limits: limits, clock: time.clock) { environment in
            let host = environment.host
            let guest = environment.guest()
            try await guest.client.connect()
            _ = try await guest.collection().commit([.add("x")], from: Self.secret)
            #expect(await eventually { time.sleeperCount == 1 })
            time.move(to: 299_000)
            #expect(host.collectionCount == 1)
            _ = try await guest.collection().commit([.add("y")], from: Self.secret, at: 2)
            time.move(to: 300_000)
            // It was used meanwhile: the idle time starts again.
            #expect(await eventually { time.sleeperCount == 1 })
            #expect(host.collectionCount == 1)
            time.move(to: 600_000)
            #expect(await eventually { host.collectionCount == 0 })
            _ = try await guest.collection().open(.all)
            time.move(to: 2_000_000)
            #expect(host.collectionCount == 1, "the collection has a reader")
            try await guest.collection().close(.all)
            #expect(await eventually { time.sleeperCount == 1 })
            time.move(to: 2_300_000)
            #expect(await eventually { host.collectionCount == 0 })
        }
    }

    @Test("a collection loaded for a refused call is unloaded too, even if its documents have expired meanwhile")
    func refused() async throws {
        let time = ManualTime(0)
        var limits = CollectionLimits()
        limits.idleTime = .milliseconds(20)
        try await CollectionTestEnvironment.run(limits: limits, clock: time.clock) { environment in
            let guest = environment.guest()
            try await guest.client.connect()
            let create = DocumentCommand.create(
                id: "x", fields: ["id": .string("x")], expiresIn: .milliseconds(1_000))
            _ = try await guest.collection().commit([create], from: Self.secret)
            // The timers for its idle time and for the document's expiry.
            #expect(await eventually { time.sleeperCount == 2 })
            time.move(to: 500)
            #expect(await eventually { environment.host.collectionCount == 0 })
            time.move(to: 5_000)
            await #expect(throws: CollectionError.otherAccount) {
                _ = try await guest.collection().commit([DocumentMutation](), from: Self.secret, as: "somebody else")
            }
            #expect(await eventually { environment.host.collectionCount == 0 })
        }
    }

    @Test("all connections of one principal share a rate of writes")
    func principals() async throws {
        var limits = CollectionLimits()
        limits.writesPerPrincipal = RateLimit(callsPerSecond: 0.001, burst: 5)
        try await CollectionTestEnvironment.run(limits: limits) { environment in
            var done = 0
            for number in 0..<5 {
                let guest = environment.guest("ada")
                try await guest.client.connect()
                let secret = "\(Self.secret)\(number)"
                let outcomes = try? await guest.collection().commit(
                    [.add("\(number)a"), .add("\(number)b")], from: secret)
                done += outcomes?.count ?? 0
            }
            #expect(done == 5)
            let other = environment.guest("bob")
            try await other.client.connect()
            #expect(try await other.collection().commit([.add("b")], from: Self.secret).map(\.error) == [nil])
        }
    }

    @Test("store failures and refusals are logged with caller, document and reason")
    func log() async throws {
        let lines = Mutex<[String]>([])
        let store = BrokenStore()
        var access = AccessPolicy.open
        access.identifiesCallers = true
        access.authenticate = { request in request.bearerToken.map { Principal(id: $0) } }
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0), access: access,
            log: ConsoleLog { line in lines.withLock { $0.append(line) } })
        var limits = CollectionLimits()
        limits.documentBytes = 100
        CollectionHost.expose(on: server, store: store, limits: limits)
        let guest = CollectionTestClient("ada", at: try await server.start())
        try await guest.client.connect()
        let todos = try guest.collection()
        let large = DocumentCommand.add("large", ["t": .string(String(repeating: "hidden", count: 50))])
        let begun = ContinuousClock.now
        _ = try await todos.commit([.add("there"), .add("there")], from: Self.secret + "0")
        for number in 1...20 { _ = try await todos.commit([large, .add("a")], from: Self.secret, at: 2 * number) }
        store.fails.withLock { $0 = true }
        for number in 50..<60 {
            await #expect(throws: CollectionError.self) {
                try await todos.commit([.add("\(number)")], from: Self.secret, at: number)
            }
        }
        let logLines = lines.withLock { $0 }
        let refusals = logLines.filter { $0.contains("refused") }
        #expect(!refusals.contains { $0.contains("document 'there'") }, "an ordinary outcome is not logged")
        // One line a second.
        let most = 2 + Int((ContinuousClock.now - begun) / .seconds(1))
        #expect(refusals.count >= 1 && refusals.count <= most)
        #expect(refusals.first?.contains("collection 'todos' to 'ada' at 127.0.0.1: document 'large'") == true)
        let failures = logLines.filter { $0.contains("failed") }
        #expect(failures.count >= 1 && failures.count <= most)
        #expect(failures.first?.contains("collection 'todos': a write of 1 document by 'ada'") == true)
        #expect(failures.first?.contains("the disk is full") == true)
        #expect(!logLines.contains { $0.contains(Self.secret) || $0.contains("hidden") || $0.contains("already") })
        await guest.client.close()
        await server.shutdown(drain: .zero)
    }

    private final class BrokenStore: StateStore {
        let memory = MemoryStore()
        let fails = Mutex(false)

        func get(_ keys: [StateKey]) async throws(StateStoreError) -> [StateKey: [UInt8]] {
            try await memory.get(keys)
        }
        func list(
            _ namespace: String, prefix: String, after: String?, limit: Int
        ) async throws(StateStoreError) -> [StateEntry] {
            try await memory.list(namespace, prefix: prefix, after: after, limit: limit)
        }
        func readLog(_ key: StateKey) async throws(StateStoreError) -> StoredLog? { try await memory.readLog(key) }
        func write(_ writes: [StateWrite]) async throws(StateStoreError) {
            if fails.withLock({ $0 }) { throw StateStoreError(.full, "the disk is full") }
            try await memory.write(writes)
        }
    }

    @Test("a call of an unknown method does not activate a collection")
    func unknownTargets() async throws {
        try await CollectionTestEnvironment.run { environment in
            let guest = environment.guest()
            try await guest.client.connect()
            for number in 0..<50 {
                let stranger = try guest.client.resolve(UnrelatedClient.self, id: "collections/c\(number)")
                let error = await #expect(throws: TrebuchetError.self) { _ = try await stranger.dance() }
                #expect(error?.code == .methodNotFound)
                #expect(environment.host.collectionCount == 0)
            }
        }
    }
}

import Bytes
import Platform
import TestSupport
import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesClient
@testable import TrebuchetServicesModel

@Suite("Memory of collections", .timeLimit(.minutes(5))) struct CollectionMemoryTests {
    private static let client = "0123456789abcdef"
    private static let host = CallerHost(address: "192.0.2.1")
    private static let other = CallerHost(address: "192.0.2.2")

    private static func usage(_ bytes: Int) -> DocumentQuotas.Usage { DocumentQuotas.Usage(documents: 0, bytes: bytes) }

    private static func limits(total: Int = 256 << 20, perConnection: Int = 32 << 20, perHost: Int = 64 << 20)
        -> CollectionLimits
    {
        var limits = CollectionLimits()
        (limits.storedBytes, limits.storedBytesPerConnection, limits.storedBytesPerHost) = (
            total, perConnection, perHost
        )
        return limits
    }

    @Test("documents count for the host that has loaded them, in total and for the server, until they are released")
    func documents() throws {
        let server = MemoryBudget(limit: 100 << 20)
        var limits = Self.limits(total: 3 << 20, perHost: 2 << 20)
        (limits.collectionBytes, limits.documentsPerCollection, limits.deduplicatedClients) = (1 << 20, 0, 0)
        let ledger = CollectionMemoryLedger(limits.memory(serverBytes: server.limit), in: server)
        let first = CollectionMemory(ledger, loadedBy: Self.host)
        try first.load(Self.usage(1 << 20))
        let second = CollectionMemory(ledger, loadedBy: Self.host)
        #expect(throws: CollectionError.clientTooLarge(limit: 2 << 20)) { try second.load(Self.usage(3 << 19 + 1)) }
        try second.load(Self.usage(1 << 20))
        let third = CollectionMemory(ledger, loadedBy: Self.other)
        #expect(throws: CollectionError.serverTooLarge(limit: 3 << 20)) { try third.load(Self.usage(2 << 20)) }
        #expect(ledger.totalBytes == 2 << 20 && server.usedBytes == 2 << 20)
        // Written documents exist, and more are refused.
        first.update(Self.usage(2 << 20))
        #expect(first.exceeded == .clientTooLarge(limit: 2 << 20) && ledger.totalBytes == 3 << 20)
        second.release()
        first.update(Self.usage(2 << 20))
        #expect(first.exceeded == nil && server.usedBytes == 2 << 20)
        first.update(Self.usage(2 << 20 - 1))
        #expect(server.usedBytes == 2 << 20, "small changes are not counted")
        first.release()
        #expect(ledger.totalBytes == 0 && server.usedBytes == 0)
        // A collection above the limits can be used alone.
        #expect(first.loadAlone(Self.usage(9 << 20)) && !second.loadAlone(Self.usage(9 << 20)))
        first.release()
        #expect(server.usedBytes == 0)
    }

    @Test("when the memory of a host is used up, others can write to a collection that it has loaded, and pay nothing")
    func otherHosts() throws {
        var limits = Self.limits(total: 8 << 20, perHost: 2 << 20)
        (limits.collectionBytes, limits.documentsPerCollection, limits.deduplicatedClients) = (1 << 20, 0, 0)
        let ledger = CollectionMemoryLedger(
            limits.memory(serverBytes: 1 << 30), in: MemoryBudget(limit: 1 << 30))
        let memory = CollectionMemory(ledger, loadedBy: Self.host)
        try memory.load(Self.usage(1 << 20))
        #expect(memory.admitsGrowth(by: Self.host))
        memory.update(Self.usage(3 << 20))
        #expect(memory.exceeded == .clientTooLarge(limit: 2 << 20))
        #expect(!memory.admitsGrowth(by: Self.host))
        #expect(memory.admitsGrowth(by: Self.other) && memory.admitsGrowth(by: nil))
        memory.update(Self.usage(5 << 20))
        #expect(memory.admitsGrowth(by: Self.other))
        #expect(ledger.bytes(of: QuotaHolder(principal: nil, host: Self.other)) == 0)
        #expect(ledger.bytes(of: QuotaHolder(principal: nil, host: Self.host)) == 5 << 20)
        memory.update(Self.usage(6 << 20))
        #expect(!memory.admitsGrowth(by: Self.other), "the rest is for hosts with little")
        memory.release()
        #expect(ledger.totalBytes == 0)
    }

    @Test("collections leave at least a half of the server's buffered bytes to others")
    func half() {
        #expect(CollectionLimits().memory(serverBytes: 100).total == 50)
        #expect(CollectionLimits().memory(serverBytes: 10 << 30).total == 256 << 20)
    }

    @Test(
        "any host may load one collection at its limits",
        arguments: [
            (8 << 20, 10_000, 64 << 20), (100 << 20, 1 << 12, 101 << 20), (.max, 1, 256 << 20), (1, .max, 256 << 20),
        ])
    func oneCollection(bytes: Int, documents: Int, perHost: Int) {
        var limits = CollectionLimits()
        (limits.collectionBytes, limits.documentsPerCollection, limits.deduplicatedClients) = (bytes, documents, 0)
        #expect(limits.memory(serverBytes: 10 << 30).perHost == perHost)
        limits.deduplicatedClients = .max
        #expect(limits.memory(serverBytes: 10 << 30).perHost >= perHost)
    }

    @Test("unused collections are unloaded when the documents of all have too many bytes, and no document is lost")
    func unloading() async throws {
        try await CollectionTestEnvironment.run(limits: Self.limits(total: 1 << 20)) { environment in
            let guest = environment.guest("ada")
            try await guest.client.connect()
            let text = JSONValue.string(String(repeating: "x", count: 60_000))
            for number in 0..<8 {
                let commands = (0..<4).map { DocumentCommand.add(DocumentID("\($0)"), ["t": text]) }
                let outcomes = try await guest.collection("c\(number)").commit(commands, from: Self.client)
                #expect(outcomes.allSatisfy { $0.error == nil })
                #expect(environment.server.bufferedBytes >= 240_000)
            }
            #expect(await eventually { environment.host.memory.totalBytes <= 1 << 20 })
            #expect(environment.host.collectionCount < 8)
            for number in 0..<8 {
                let page = try await guest.collection("c\(number)").get(CollectionQuery(limit: 4))
                #expect(page.documents.count == 4)
            }
        }
    }

    @Test("the memory of an incomplete evaluation counts for its caller")
    func evaluations() async throws {
        let limits = Self.limits(perConnection: 32 << 10)
        try await CollectionTestEnvironment.run(limits: limits) { environment in
            let (writer, reader) = (environment.guest("ada"), environment.guest("ada"))
            try await writer.client.connect()
            try await reader.client.connect()
            let array = JSONValue.array((0..<10_000).map { .integer($0) })
            let added = try await writer.collection().commit([.add("d", ["l": array])], from: Self.client)
            #expect(added.map(\.error) == [nil])
            func conditions(_ count: Int) -> [QueryCondition] {
                (0..<count).map { .field("l", contains: .integer(Int64($0))) }
            }
            // The second condition reads the array into a cache.
            let found = try await reader.collection().get(CollectionQuery(where: conditions(1)))
            #expect(found.documents.count == 1)
            await #expect(throws: CollectionError.clientTooLarge(limit: 32 << 10)) {
                try await reader.collection().get(CollectionQuery(where: conditions(2)))
            }
            #expect(environment.host.memory.bytes(of: QuotaHolder(principal: "ada", host: nil)) == 0)
            await #expect(throws: CollectionError.clientTooLarge(limit: 32 << 10)) {
                try await reader.collection().open(CollectionQuery(where: conditions(2)))
            }
        }
    }

    @Test("documents do not grow while the memory of collections in use is exhausted, and may be deleted")
    func full() async throws {
        try await CollectionTestEnvironment.run(limits: Self.limits(total: 400_000)) { environment in
            let guest = environment.guest("ada")
            try await guest.client.connect()
            let collection = try guest.collection()
            let text = JSONValue.string(String(repeating: "x", count: 60_000))
            var written = 0
            // The client repeats what is refused; no outcome is an error.
            await #expect(throws: CollectionError.rateLimited(retryAfterMilliseconds: 1_000)) { () async throws in
                while written < 10 {
                    let add = DocumentMutation(
                        number: written + 1, command: .add(DocumentID("\(written)"), ["t": text]))
                    let outcomes = try await collection.commit([add], from: Self.client)
                    #expect(outcomes.map(\.error) == [nil])
                    written += 1
                }
            }
            #expect((6...8).contains(written), "\(written)")
            // A repeated mutation has its recorded outcome.
            let repeated = DocumentMutation(number: written, command: .add(DocumentID("\(written - 1)"), ["t": text]))
            #expect(try await collection.commit([repeated], from: Self.client).map(\.error) == [nil])
            for number in 0..<3 {
                let delete = DocumentMutation(number: number + 20, command: .delete(id: DocumentID("\(number)")))
                #expect(try await collection.commit([delete], from: Self.client).map(\.error) == [nil])
            }
            let add = DocumentMutation(number: 30, command: .add("new", ["t": text]))
            #expect(try await collection.commit([add], from: Self.client).map(\.error) == [nil])
        }
    }

    @Test("a write that has waited for memory for 30 s fails with the limit, and those behind it wait")
    func waiting() async throws {
        let time = ManualTime(1_000_000)
        try await CollectionTestEnvironment.run(limits: Self.limits(total: 400_000), clock: time.clock) { environment in
            let guest = environment.guest("ada")
            try await guest.client.connect()
            let collection = try guest.collection()
            let text = JSONValue.string(String(repeating: "x", count: 60_000))
            func add(_ numbers: ClosedRange<Int>) -> [DocumentMutation] {
                numbers.map { DocumentMutation(number: $0, command: .add(DocumentID("\($0)"), ["t": text])) }
            }
            // All of one call, so that they are above the limit.
            for call in [1...4, 5...8] { _ = try await collection.commit(add(call), from: Self.client) }
            let limited = CollectionError.rateLimited(retryAfterMilliseconds: 1_000)
            await #expect(throws: limited) { try await collection.commit(add(9...10), from: Self.client) }
            time.move(to: 1_029_999)
            await #expect(throws: limited) { try await collection.commit(add(9...10), from: Self.client) }
            time.move(to: 1_030_000)
            let outcomes = try await collection.commit(add(9...11), from: Self.client)
            let full = CollectionError.serverTooLarge(limit: 400_000)
            #expect(outcomes.map(\.error) == [full, full])
            await #expect(throws: limited) { try await collection.commit(add(11...11), from: Self.client) }
            // The refusal is recorded behind the mutations before it.
            let other = "fedcba9876543210"
            await #expect(throws: limited) { try await collection.commit(add(22...22), from: other) }
            time.move(to: 1_060_000)
            let both = [DocumentMutation(number: 21, command: .delete(id: "none"))] + add(22...22)
            for _ in 0..<2 { #expect(try await collection.commit(both, from: other).map(\.error) == [nil, full]) }
        }
    }

    @Test("waits are measured for a bounded number of clients, and for all together above it")
    func waits() {
        let ledger = CollectionMemoryLedger(
            Self.limits().memory(serverBytes: 1 << 30), in: MemoryBudget(limit: 1 << 30))
        let memory = CollectionMemory(ledger, loadedBy: nil)
        for number in 0..<1_024 { #expect(!memory.hasWaited(ByteText("\(number)"), 1, through: 3, at: number)) }
        #expect(
            !memory.hasWaited(ByteText("7"), 3, through: 3, at: 30_006)
                && memory.hasWaited(ByteText("7"), 3, through: 3, at: 30_007))
        #expect(
            !memory.hasWaited(ByteText("7"), 4, through: 5, at: 30_007)
                && !memory.hasWaited(ByteText("7"), 5, through: 5, at: 60_006))
        #expect(
            !memory.hasWaited(ByteText("new"), 1, through: 1, at: 29_999)
                && memory.hasWaited(ByteText("new"), 1, through: 1, at: 30_000))
        memory.update(Self.usage(1 << 20))
        #expect(!memory.hasWaited(ByteText("new"), 1, through: 1, at: 30_000))
    }

    @Test("recorded outcomes count for the collection, also those of mutations without effect, until it is unloaded")
    func outcomes() async throws {
        try await CollectionTestEnvironment.run { environment in
            let guest = environment.guest("ada")
            try await guest.client.connect()
            let collection = try guest.collection()
            _ = try await collection.commit([.add("a")], from: Self.client)
            for number in 0..<400 {
                let delete = DocumentMutation(number: 1, command: .delete(id: "none"))
                let outcomes = try await collection.commit([delete], from: "0123456789abcdef\(number)")
                #expect(outcomes.map(\.error) == [nil])
            }
            let memory = environment.host.memory
            #expect(memory.totalBytes >= 64 << 10)
            _ = try await collection.commit([.delete(id: "a")], from: Self.client, at: 2)
            #expect(await eventually { memory.totalBytes == 0 })
        }
    }

    @Test("each host has guaranteed memory while others have used up the rest")
    func guaranteed() throws {
        let server = MemoryBudget(limit: 1 << 30)
        let ledger = CollectionMemoryLedger(Self.limits(total: 256 << 20).memory(serverBytes: 1 << 30), in: server)
        let full = CollectionError.serverTooLarge(limit: 256 << 20)
        func charge(_ bytes: Int, _ host: CallerHost?) -> CollectionMemoryLedger.Charge {
            CollectionMemoryLedger.Charge(bytes: bytes, holder: QuotaHolder(principal: nil, host: host), client: nil)
        }
        for number in 0..<3 {
            try ledger.replace([], with: charge(64 << 20, CallerHost(address: "198.51.100.\(number)")))
        }
        let large = charge(2 << 20, Self.other)
        #expect(throws: full) { try ledger.replace([], with: large) }
        // 64 hosts have 1 MiB each.
        for number in 0..<64 {
            let small = charge(1 << 20, CallerHost(address: "192.0.2.\(number)"))
            try ledger.replace([], with: charge(1 << 19, CallerHost(address: "192.0.2.\(number)")))
            #expect(throws: full) { try ledger.replace([], with: small) }
            try ledger.replace([charge(1 << 19, small.holder.host)], with: small)
        }
        #expect(ledger.totalBytes == 256 << 20)
        #expect(throws: full) { try ledger.replace([], with: charge(1, CallerHost(address: "192.0.2.99"))) }
        // Released memory of others is not for a host above its guaranteed bytes.
        ledger.release([charge(1 << 20, Self.host)])
        #expect(throws: full) { try ledger.replace([], with: large) }
        try ledger.replace([], with: charge(1 << 20, nil))
    }

    @Test("open queries count for their connection by their conditions and results, until they are closed")
    func queries() async throws {
        var limits = Self.limits(perConnection: 400_000)
        limits.idleQueryTime = .zero
        try await CollectionTestEnvironment.run(limits: limits) { environment in
            let (ada, bob) = (environment.guest("ada"), environment.guest("bob"))
            try await ada.client.connect()
            try await bob.client.connect()
            let (collection, other) = (try ada.collection(), try bob.collection())
            for part in 0..<10 {
                let mutation = DocumentMutation(
                    number: part + 1, writes: (0..<100).map { DocumentWrite(.add(DocumentID("\(part)-\($0)"))) })
                _ = try await collection.commit([mutation], from: Self.client)
            }
            let memory = environment.host.memory
            let before = memory.totalBytes
            let queries = (0..<4).map { CollectionQuery(order: [.ascending("f\($0)")]) }
            _ = try await collection.open(queries[0])
            let bytes = memory.totalBytes - before
            #expect(bytes >= 1_000 * (RowList.rowBytes + 256))
            await #expect(throws: CollectionError.clientTooLarge(limit: 400_000)) {
                try await collection.open(queries[1])
            }
            #expect(memory.totalBytes == before + bytes && environment.host.queryCount == 1)
            _ = try await other.open(queries[1])
            // The query of a connection that ends counts for another reader.
            _ = try await other.open(CollectionQuery(limit: 1))
            _ = try await collection.open(CollectionQuery(limit: 1))
            try await collection.close(queries[0])
            _ = try await collection.open(queries[2])
            await bob.client.close()
            #expect(await eventually { environment.host.queryCount == 2 })
            try await collection.close(queries[2])
            try await collection.close(CollectionQuery(limit: 1))
            #expect(await eventually { memory.totalBytes == before && environment.host.queryCount == 0 })
        }
    }

    @Test("a query whose result grows above the limit of its connection is closed")
    func growth() async throws {
        var limits = Self.limits(perConnection: 200_000)
        limits.idleQueryTime = .zero
        try await CollectionTestEnvironment.run(limits: limits) { environment in
            let (ada, bob) = (environment.guest("ada"), environment.guest("bob"))
            try await ada.client.connect()
            try await bob.client.connect()
            _ = try await ada.collection().open(.all)
            let writer = try bob.collection()
            for part in 0..<9 {
                let mutation = DocumentMutation(
                    number: part + 1, writes: (0..<100).map { DocumentWrite(.add(DocumentID("\(part)-\($0)"))) })
                _ = try await writer.commit([mutation], from: Self.client)
            }
            #expect(await eventually { environment.host.queryCount == 0 })
            await #expect(throws: CollectionError.clientTooLarge(limit: 200_000)) {
                try await ada.collection().open(.all)
            }
        }
    }
}

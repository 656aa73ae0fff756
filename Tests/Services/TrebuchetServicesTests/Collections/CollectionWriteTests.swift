import SharedState
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices
@testable import TrebuchetServicesClient
@testable import TrebuchetServicesModel

struct ConditionalWriteAccount: Codable, Identifiable, Equatable, Sendable {
    var id: String
    var balance = 0
    var state: String?
    var seenAt: ServerTime?
    var friends: [String]?
    var address: [String: String]?
}

@MainActor @Suite("Writes of collections", .timeLimit(.minutes(5))) struct CollectionWriteTests {
    static let secret = "0123456789abcdef"

    func accounts(_ guest: CollectionTestClient) -> Shared<SyncedCollection<ConditionalWriteAccount>> {
        guest.backend.withCurrent {
            Shared(.trebuchetCollection(CollectionKey<ConditionalWriteAccount>("accounts")), store: guest.store)
        }
    }

    func connected(_ environment: CollectionTestEnvironment, _ name: String = "nobody") async throws
        -> CollectionTestClient
    {
        let guest = environment.guest(name)
        try await guest.client.connect()
        return guest
    }

    @Test("the commands of a transaction are executed together or not at all, and others see all of them at once")
    func transaction() async throws {
        try await CollectionTestEnvironment.run { environment in
            let (ada, bob) = (accounts(environment.guest()), accounts(environment.guest()))
            try await ada.transaction { accounts in
                try accounts.create(ConditionalWriteAccount(id: "ada", balance: 10))
                try accounts.create(ConditionalWriteAccount(id: "bob"))
            }
            await shows(bob) { $0.items.count == 2 }
            let sums = Task {
                var sums: Set<Int> = []
                for await value in bob.updates {
                    sums.insert(value.items.reduce(0) { $0 + $1.balance })
                    if value.items[id: "bob"]?.balance == 10 { break }
                }
                return sums
            }
            for _ in 0..<10 {
                let call = ada.transaction(onError: nil) { accounts in
                    try accounts.update("ada") { $0.balance -= 1 }
                    try accounts.increment("bob", "balance", by: 1)
                }
                #expect(ada.wrappedValue.items.reduce(0) { $0 + $1.balance } == 10)
                try await call.value
            }
            #expect(await sums.value == [10])

            let before = bob.wrappedValue.items
            let refused = ada.transaction(onError: nil) { accounts in
                try accounts.increment("ada", "balance", by: 100)
                try accounts.delete("bob")
                try accounts.create(ConditionalWriteAccount(id: "ada"))
            }
            #expect(ada.wrappedValue.items == before, "a write that will be refused is not shown")
            let error = await #expect(throws: TransactionError.self) { try await refused.value }
            #expect(error == TransactionError(index: 2, reason: .alreadyExists(id: "ada")))
            try await bob.create(ConditionalWriteAccount(id: "last"))
            #expect(bob.wrappedValue.items.elements.dropLast() == before.elements[...])
        }
    }

    @Test("a condition is checked at the time of the write, and its error has the current values")
    func conditions() async throws {
        try await CollectionTestEnvironment.run { environment in
            let (ada, bob) = (accounts(environment.guest()), accounts(environment.guest()))
            try await ada.create(ConditionalWriteAccount(id: "1", balance: 1, state: "open"))
            await shows(bob) { $0.items.count == 1 }
            let first = try #require(bob.wrappedValue.document("1")?.revision)
            try await ada.update("1", if: .field("state", equals: .string("open"))) { $0.state = "ada's" }
            let guest = try await connected(environment)
            let fields = try CollectionCommands.fields(of: ConditionalWriteAccount(id: "2"))
            let condition = WriteCondition.field("state", equals: .string("open"))
            func write(_ number: Int, _ command: DocumentCommand, _ condition: WriteCondition?) async throws
                -> CollectionError?
            {
                let mutation = DocumentMutation(number: number, writes: [DocumentWrite(command, if: condition)])
                return try await guest.collection("accounts").commit([mutation], from: Self.secret)[0].error
            }
            #expect(
                try await write(1, .update(id: "1", fields: ["state": .string("x")]), condition)
                    == .conditionFailed(id: "1", revision: first + 1, found: ["state": .string("ada's")]))
            #expect(
                try await write(2, .delete(id: "1"), .revision(first))
                    == .conditionFailed(id: "1", revision: first + 1, found: [:]))
            #expect(
                try await write(3, .create(id: "1", fields: ["id": .string("1")]), .absent)
                    == .conditionFailed(id: "1", revision: first + 1, found: [:]))
            #expect(
                try await write(4, .update(id: "2", fields: [:]), .revision(first))
                    == .conditionFailed(id: "2", revision: nil, found: [:]))
            #expect(try await write(5, .check(id: "2"), nil) == .notFound(id: "2"))
            #expect(try await write(6, .check(id: "2"), .absent) == nil)
            #expect(try await write(7, .create(id: "2", fields: fields), .absent) == nil)

            await shows(ada) { $0.items.count == 2 }
            let revision = try #require(ada.wrappedValue.document("1")?.revision)
            #expect(revision == first + 1)
            try await bob.update("1", if: .revision(revision)) { $0.balance = 5 }
            await #expect(throws: CollectionError.conditionFailed(id: "1", revision: first + 3, found: [:])) {
                try await ada.delete("1", if: .revision(revision))
            }
        }
    }

    @Test("increments of several clients add up, and each client shows its own immediately and only once")
    func increments() async throws {
        try await CollectionTestEnvironment.run { environment in
            let (ada, bob) = (accounts(environment.guest()), accounts(environment.guest()))
            try await ada.create(ConditionalWriteAccount(id: "1"))
            await shows(bob) { $0.items.count == 1 }
            let rises = Task {
                var last = 0
                for await value in ada.updates {
                    let balance = value.items[id: "1"]?.balance ?? 0
                    if balance < last { return false }
                    last = balance
                    if balance == 200 { return true }
                }
                return false
            }
            for number in 1...100 {
                ada.increment("1", "balance", by: 1, onError: nil)
                #expect(ada.wrappedValue.items[id: "1"]?.balance ?? 0 >= number)
                bob.increment("1", "balance", by: 1, onError: nil)
                if number % 10 == 0 { await Task.yield() }
            }
            await shows(bob) { $0.items[id: "1"]?.balance == 200 && !$0.isSyncing }
            #expect(await rises.value)
            await #expect(throws: CollectionError.numberOverflow(id: "1", field: "balance")) {
                try await bob.increment("1", "balance", by: Int.max)
            }
            await #expect(throws: CollectionError.notANumber(id: "1", field: "id")) {
                try await bob.increment("1", "id", by: 1)
            }
        }
    }

    @Test("changes of parts of a field merge with other changes; a time is the server's; links need an array")
    func fields() async throws {
        let time = ManualTime(5_000)
        try await CollectionTestEnvironment.run(clock: time.clock) { environment in
            let (ada, bob) = (accounts(environment.guest()), accounts(environment.guest()))
            try await ada.create(
                ConditionalWriteAccount(id: "1", state: "open", seenAt: .now, address: ["city": "Bonn"]))
            await shows(bob) { $0.items[id: "1"]?.seenAt == ServerTime(milliseconds: 5_000) }
            time.move(to: 6_000)
            bob.merge("1", ["address": .object(["street": .string("Ring")])], onError: nil)
            #expect(bob.wrappedValue.items[id: "1"]?.address == ["city": "Bonn", "street": "Ring"])
            try await ada.merge("1", ["address": .object(["city": .null, "zip": .string("1")])])
            await shows(bob) { $0.items[id: "1"]?.address == ["street": "Ring", "zip": "1"] }
            let call = ada.update("1", onError: nil) { $0.seenAt = .now }
            #expect(ada.wrappedValue.items[id: "1"]?.seenAt?.date != nil, "until then by the client's clock")
            try await call.value
            await shows(bob) { $0.items[id: "1"]?.seenAt == ServerTime(milliseconds: 6_000) }
            #expect(bob.wrappedValue.document("1")?.updatedMilliseconds == 6_000)
            await #expect(throws: CollectionError.notAnArray(id: "1", field: "state")) {
                try await ada.link("1", "state", to: "x")
            }
            await #expect(throws: CollectionError.notAnArray(id: "1", field: "state")) {
                try await ada.unlink("1", "state", from: "open")
            }
            #expect(ada.wrappedValue.items[id: "1"]?.state == "open")
        }
    }

    /// Hidden documents can be neither read nor linked to.
    struct HiddenDocuments: CollectionRules {
        func isAllowed(
            _ principal: Principal?, _ action: CollectionAction, _ document: Document, in collection: String
        ) -> Bool { action != .read || document.fields["hidden"] == nil }
    }

    @Test("a checked link needs an existing target, in this collection or another, that the caller may read")
    func checkedLinks() async throws {
        let time = ManualTime(1_000)
        try await CollectionTestEnvironment.run(rules: HiddenDocuments(), clock: time.clock) { environment in
            let guest = try await connected(environment)
            let (people, todos) = (try guest.collection("people"), try guest.collection("todos"))
            let created = try await people.commit(
                [
                    .add("ada"), .add("eve", ["hidden": .bool(true)]),
                    .create(id: "tim", fields: ["id": .string("tim")], expiresIn: .seconds(1)),
                ], from: Self.secret)
            #expect(created.map(\.error) == [nil, nil, nil])
            func link(_ target: String, _ collection: String) -> DocumentCommand {
                .link(id: "1", field: "who", target: .string(target), in: collection)
            }
            let outcomes = try await todos.commit(
                [
                    .add("1"), link("ada", "people"), link("bob", "people"), link("eve", "people"),
                    link("tim", "people"), link("1", "todos"), link("2", "todos"), link("ada", "nobody"), .add("2"),
                    link("2", "todos"),
                ], from: Self.secret)
            func missing(_ id: String, _ collection: String) -> CollectionError {
                .linkTargetMissing(id: id, collection: collection)
            }
            #expect(
                outcomes.map(\.error) == [
                    nil, nil, missing("bob", "people"), missing("eve", "people"), nil, nil, missing("2", "todos"),
                    missing("ada", "nobody"), nil, nil,
                ])
            time.move(to: 2_000)
            #expect(
                try await todos.commit([.add("3"), link("tim", "people")], from: Self.secret, at: 11).map(\.error)
                    == [nil, missing("tim", "people")])
            // The target is deleted, and the link stays.
            _ = try await people.commit([.delete(id: "ada")], from: Self.secret, at: 4)
            #expect(
                try await todos.commit(
                    [.unlink(id: "1", field: "who", target: .string("ada"))], from: Self.secret, at: 13
                )
                .map(\.error) == [nil])
        }
    }

    /// A store that can delay the loading of collections whose names begin with `people`.
    final class SlowStore: StateStore {
        private let memory = MemoryStore()
        private let state = Mutex((isOpen: true, waiting: [CheckedContinuation<Void, Never>]()))

        var waitingCount: Int { state.withLock { $0.waiting.count } }

        func close() { state.withLock { $0.isOpen = false } }

        func open() {
            let waiting = state.withLock { state in
                defer { state = (true, []) }
                return state.waiting
            }
            for continuation in waiting { continuation.resume() }
        }

        func get(_ keys: [StateKey]) async throws(StateStoreError) -> [StateKey: [UInt8]] {
            try await memory.get(keys)
        }
        func list(
            _ namespace: String, prefix: String, after: String?, limit: Int
        ) async throws(StateStoreError) -> [StateEntry] {
            try await memory.list(namespace, prefix: prefix, after: after, limit: limit)
        }
        func readLog(_ key: StateKey) async throws(StateStoreError) -> StoredLog? {
            if key.namespace.hasPrefix("collection.people") {
                await withCheckedContinuation { continuation in
                    let isOpen = state.withLock { state in
                        if !state.isOpen { state.waiting.append(continuation) }
                        return state.isOpen
                    }
                    if isOpen { continuation.resume() }
                }
            }
            return try await memory.readLog(key)
        }
        func write(_ writes: [StateWrite]) async throws(StateStoreError) { try await memory.write(writes) }
    }

    @Test("while a commit loads the collections of its links, only later commits of its connection wait for it")
    func order() async throws {
        let store = SlowStore()
        try await CollectionTestEnvironment.run(store: store) { environment in
            let people = try await connected(environment).collection("people")
            _ = try await people.commit([.add("ada")], from: Self.secret)
        }
        try await CollectionTestEnvironment.run(store: store) { environment in
            let (guest, other) = (try await connected(environment), try await connected(environment))
            let todos = try guest.collection("todos")
            _ = try await todos.commit([.add("1")], from: Self.secret)
            store.close()
            let link = DocumentCommand.link(id: "1", field: "who", target: .string("ada"), in: "people")
            let first = Task { try await todos.commit([link, link], from: Self.secret, at: 2) }
            #expect(await eventually { store.waitingCount == 1 })
            let second = Task {
                try await todos.commit([.update(id: "1", fields: ["n": .integer(1)])], from: Self.secret, at: 4)
            }
            // Calls over one connection start in the order in which they are sent: the second has started by then.
            for _ in 0..<5 {
                await Task.yield()
                _ = try await todos.open(.all)
            }
            let third = try await other.collection("todos").commit([.add("2")], from: "fedcba9876543210")
            #expect(third.map(\.error) == [nil] && store.waitingCount == 1)
            store.open()
            #expect(try await first.value.map(\.error) == [nil, nil])
            #expect(try await second.value.map(\.error) == [nil])
        }
    }

    // MARK: Bounds

    @Test("a document's depth and a command's size are limited; excessive nesting is refused without decoding")
    func depth() async throws {
        func nested(_ depth: Int) -> JSONValue { (1..<depth).reduce(.array([])) { value, _ in .array([value]) } }
        try await CollectionTestEnvironment.run { environment in
            let guest = try await connected(environment)
            let todos = try guest.collection()
            let outcomes = try await todos.commit(
                [
                    .add("1", ["v": nested(47)]), .add("2", ["v": nested(48)]),
                    .merge(id: "1", fields: ["w": nested(48)]), .link(id: "1", field: "l", target: nested(46)),
                    .link(id: "1", field: "l", target: nested(47)),
                ], from: Self.secret)
            let tooDeep = CollectionError.tooDeep(limit: 48)
            #expect(outcomes.map(\.error) == [nil, tooDeep, tooDeep, nil, tooDeep])
            // A reader gets the whole document.
            let ticket = try await todos.open(.all)
            let view = try guest.client.resolve(CollectionView.self, id: ticket.view)
            for await result in await view.observeResult() {
                #expect(result.documents.first?.value.depth == 48)
                break
            }
            let heap =
                Array(#"{"number":6,"command":{"update":{"id":"1","fields":{"v":"#.utf8)
                + Array(repeating: UInt8(ascii: "["), count: 55) + Array(repeating: UInt8(ascii: "]"), count: 55)
                + Array("}}}}".utf8)
            let deep = try EncodedJSON(json: heap)
            await #expect(throws: tooDeep) { try await todos.commit([deep], from: Self.secret) }
            let large = EncodedJSON(.array(Array(repeating: .array([]), count: 200_000)))
            await #expect(throws: CollectionError.documentTooLarge(id: "", bytes: large.byteCount, limit: 512 << 10)) {
                try await todos.commit([large], from: Self.secret)
            }
        }
    }

    @Test("each command of a transaction counts as a write, and an invalid one affects no other")
    func counting() async throws {
        var limits = CollectionLimits()
        limits.writesPerConnection = RateLimit(callsPerSecond: 0.001, burst: 10)
        try await CollectionTestEnvironment.run(limits: limits) { environment in
            let guest = try await connected(environment)
            let todos = try guest.collection()
            func many(_ number: Int, _ count: Int) -> DocumentMutation {
                DocumentMutation(
                    number: number, writes: (0..<count).map { DocumentWrite(.add("\(number)-\($0)")) })
            }
            let odd = EncodedJSON(.object(["number": .integer(2), "command": .object(["dance": .object([:])])]))
            let first = try await todos.commit(
                [EncodedJSON(many(1, 5).value), odd, EncodedJSON(many(3, 3).value), EncodedJSON(many(4, 2).value)],
                from: Self.secret)
            #expect(first.map(\.number) == [1, 2, 3])
            #expect(first[0].error == nil && first[2].error == nil)
            guard case .invalidDocument? = first[1].error else {
                Issue.record("\(String(describing: first[1].error))")
                return
            }
            await #expect(throws: CollectionError.self) { try await todos.commit([many(4, 2)], from: Self.secret) }
        }
    }

    @Test(
        "a mutation with an invalid value affects no other of its call",
        arguments: [#"{"a":1,"a":2}"#, #"{"a":1e400}"#, #"{"a":{"b":1,"b":2}}"#])
    func invalidValue(fields: String) async throws {
        try await CollectionTestEnvironment.run { environment in
            let guest = try await connected(environment)
            let todos = try guest.collection()
            let odd = try EncodedJSON(
                json: Array(#"{"command":{"create":{"id":"b","fields":\#(fields)}},"number":2}"#.utf8))
            let mutations = [1, 3].map { DocumentMutation(number: $0, writes: [DocumentWrite(.add("\($0)"))]) }
            let outcomes = try await todos.commit(
                [EncodedJSON(mutations[0].value), odd, EncodedJSON(mutations[1].value)], from: Self.secret)
            #expect(outcomes.map(\.number) == [1, 2, 3])
            #expect(outcomes[0].error == nil && outcomes[2].error == nil)
            guard case .invalidDocument? = outcomes[1].error else {
                Issue.record("\(String(describing: outcomes[1].error))")
                return
            }
            // That of the last write.
            #expect(outcomes[1].revision == outcomes[0].revision)
        }
    }
}

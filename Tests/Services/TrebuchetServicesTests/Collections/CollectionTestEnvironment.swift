import SharedState
import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices
@testable import TrebuchetServicesModel

struct Todo: Codable, Identifiable, Equatable, Sendable {
    var id: String
    var title = ""
    var isDone = false
    var priority = 0
    var note: String?
    var tags: [String] = []
}

extension Schema {
    static let todos = CollectionKey<Todo>("todos")
}

/// A server with collections, whose clients are identified by a token: their name; the name `nobody` denotes an anonymous client.
struct CollectionTestEnvironment {
    let server: TrebuchetServer
    let host: CollectionHost
    let address: SocketAddress

    static func run(
        store: any StateStore = MemoryStore(), rules: any CollectionRules = CreatorRules(),
        limits: CollectionLimits = CollectionLimits(),
        clock: CollectionClock = CollectionClock(), reactors: Int? = nil, interceptors: [any ServerInterceptor] = [],
        isolation: isolated (any Actor)? = #isolation, _ body: (CollectionTestEnvironment) async throws -> Void
    ) async throws {
        let environment = try await begin(
            store: store, rules: rules, limits: limits, clock: clock, reactors: reactors,
            interceptors: interceptors)
        do {
            try await body(environment)
        } catch {
            await environment.server.shutdown(drain: .zero)
            throw error
        }
        await environment.server.shutdown(drain: .zero)
    }

    static func begin(
        store: any StateStore = MemoryStore(), rules: any CollectionRules = CreatorRules(),
        limits: CollectionLimits = CollectionLimits(),
        clock: CollectionClock = CollectionClock(), port: Int = 0, reactors: Int? = nil,
        interceptors: [any ServerInterceptor] = []
    ) async throws -> CollectionTestEnvironment {
        var access = AccessPolicy.open
        access.identifiesCallers = true
        access.interceptors = interceptors
        access.authenticate = { request in
            request.bearerToken.flatMap { $0 == "nobody" ? nil : Principal(id: $0) }
        }
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: port), reactors: reactors, access: access)
        let host = CollectionHost.expose(on: server, store: store, rules: rules, limits: limits, clock: clock)
        return CollectionTestEnvironment(server: server, host: host, address: try await server.start())
    }

    func guest(_ name: String = "nobody", at address: SocketAddress? = nil) -> CollectionTestClient {
        CollectionTestClient(name, at: address ?? self.address)
    }
}

/// A client of collections, as a separate app.
struct CollectionTestClient {
    let client: TrebuchetClient
    let backend: TrebuchetBackend
    let store = SharedStore()

    init(_ name: String = "nobody", at address: SocketAddress) {
        var options = TrebuchetClient.Options()
        options.token = { name }
        // The default is too short for the longest of these calls on a busy machine.
        options.callTimeout = .seconds(240)
        options.reconnect.initialDelay = .milliseconds(2)
        options.reconnect.maximumDelay = .milliseconds(20)
        options.reconnect.retriesFirstConnection = true
        self.init(
            TrebuchetClient(transport: .webSocket(host: address.host, port: address.port), options: options))
    }

    init(_ client: TrebuchetClient) {
        self.client = client
        backend = TrebuchetBackend(client: client)
    }

    func todos(
        where conditions: [QueryCondition] = [], order: [QueryOrder] = [], limit: Int? = nil, after: String? = nil,
        counts: Bool = false
    ) -> Shared<SyncedCollection<Todo>> {
        backend.withCurrent {
            Shared(
                .trebuchetCollection(
                    Schema.todos, where: conditions, order: order, limit: limit, after: after, counts: counts),
                store: store)
        }
    }

    /// The collection's actor, for calls without a `SyncedCollection`.
    func collection(_ name: String = "todos") throws -> DocumentCollection {
        try client.resolve(DocumentCollection.self, id: "collections/\(name)")
    }
}

/// Returns when the value meets the condition.
func shows<Value>(
    _ shared: Shared<Value>, isolation: isolated (any Actor)? = #isolation, _ condition: (Value) -> Bool
) async {
    for await value in shared.updates where condition(value) { return }
}

extension JSONObject {
    func with(_ name: String, _ value: JSONValue) -> JSONObject {
        var changed = self
        changed[name] = value
        return changed
    }
}

extension Document {
    static func todo(_ id: DocumentID, _ fields: JSONObject = [:], created: Int = 0) -> Document {
        Document(id: id, fields: fields.with("id", .string(id.text)), created: created)
    }
}

extension DocumentCommand {
    static func add(_ id: DocumentID, _ fields: JSONObject = [:]) -> DocumentCommand {
        .create(id: id, fields: fields.with("id", .string(id.text)))
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
        _ mutations: [DocumentMutation], from client: String, as account: String
    ) async throws -> [MutationOutcome] {
        try await commit(mutations.map { EncodedJSON($0.value) }, from: client, as: account)
    }

    /// Numbers the commands in sequence, starting with the given number.
    nonisolated func commit(
        _ commands: [DocumentCommand], from client: String, at first: Int = 1
    ) async throws -> [MutationOutcome] {
        try await commit(
            commands.enumerated().map { DocumentMutation(number: first + $0, command: $1) }, from: client)
    }
}

extension MatchLists {
    /// Builds the index of a field for a list; returns true when nothing is left to do.
    mutating func prepare(
        _ key: MatchList.Key, mayRead: @escaping @Sendable (Document) -> Bool, _ slice: inout ScanSlice
    ) -> Bool {
        index(for: key).map { continueIndexing($0, mayRead: mayRead, &slice) } ?? true
    }
}

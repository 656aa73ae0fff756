// swift-format-ignore-file
// The code of the guides for servers, as on the pages: GuideSnippetTests compares them. It is compiled, but not run.
import Foundation
import Observation
import Trebuchet
import TrebuchetNodes
import TrebuchetTelemetry
import TrebuchetCluster
import TrebuchetRedis
import TrebuchetServices
import TrebuchetStore

private struct Todo: Codable, Sendable, Identifiable {
    var id: String
    var title: String
    var isDone = false
}

private enum ActorsGuide {
    struct Board: Codable, Sendable { var fields: [Int] = [] }

    @Trebuchet
    distributed actor Match {
        @StreamedState var board = Board()

        func deactivate() async throws {
        }
    }

    @Trebuchet
    distributed actor Table {
        distributed func enter(_ name: String) {}
    }

    @Trebuchet
    distributed actor Final {
        private var winner = ""

        distributed func finish() async throws {
            let table = try actorSystem.resolve(Table.self, id: "tables/spring")
            try await table.enter(winner)
        }
    }

    static func expose(_ server: TrebuchetServer) {
        server.expose(Match.self, as: "matches/*", idle: .seconds(300)) { name in
            Match(actorSystem: server.actorSystem)          // name is the whole name: matches/42
        }
    }

    static func quotas(_ access: AccessPolicy) {
        var limits = ServerLimits()
        limits.activatedActors.perPrincipal = 5
        limits.calls.rate.perConnection = RateLimit(callsPerSecond: 100, burst: 200)      // off until set
        let server = TrebuchetServer(transport: .webSocket(host: "0.0.0.0", port: 8080), limits: limits, access: access)
        _ = server.reactorStallCount
    }
}

private enum StreamingGuide {
    @Trebuchet
    distributed actor Counter {
        struct State: Codable, Sendable { var count = 0 }
        @StreamedState var state = State()

        distributed func add(_ amount: Int) { state.count += amount }
    }

    static func observe(_ client: TrebuchetClient) async throws {
        let counter = try client.resolve(Counter.self, id: "counter")
        for await state in await counter.observeState() { print(state.count) }
    }

    enum Move: String, Codable, Sendable { case left }

    @Trebuchet
    distributed actor Account {
        @StreamedState(delivery: .every(buffer: 256)) var balance: Int = 0     // each change is a version, also within one call
        @StreamedEvents var moves: Move                                        // $moves.send(.left)

        distributed func move() { $moves.send(.left) }
    }

    static func follow(_ game: Account, _ account: Account, since saved: EventBookmark?) async throws {
        for try await move in await game.observeMoves() {
            print(move)
        }
        for try await balance in account.observeBalance.throwing() {
            print(balance)
        }
        let moves = await game.observeMoves(since: saved)
        print(moves.bookmark as Any)
        _ = await game.observeMoves(onUndecodable: .end)
    }

    @Trebuchet distributed actor Board {
        @StreamedState var todos = KeyedCollection<Todo>()          // Todo: Codable, Sendable, Identifiable
        distributed func finish(_ id: Todo.ID) { todos.update(id: id) { $0.isDone = true } }
    }

    struct Player: Codable, Sendable { var name: String }

    static func filter(_ game: Counter) async {
        let seven = await game.observeState(filter: .path("/players/7").atMost(every: .milliseconds(100)), as: Player.self)
        _ = seven
    }

    @Trebuchet
    distributed actor TodoList {
        @StreamedState var state: [Todo] = []
    }

    @MainActor @Observable final class TodosModel {
        @ObservationIgnored @ObservedActor("todos", observe: \TodoList.observeState) var state
    }
}

private enum PersistenceGuide {
    struct Reminder: Codable, Sendable { var text: String }

    enum First {
        struct State: Codable, Sendable { var todos: [Todo] = [] }

        @Trebuchet
        distributed actor TodoList {
            @StreamedState(persisted: true) var state: State = State()
            @StreamedEvents(persisted: true) var reminders: Reminder
        }

        static func serve() async throws {
            let store = try SQLiteStore(path: "trebuchet.db")
            let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 8080), store: store)
            await server.expose(TodoList(actorSystem: server.actorSystem), as: "todos")
            try await server.run()
            await store.close()
        }
    }

    @Trebuchet
    distributed actor Filled {
        struct State: Codable, Sendable {
            var todos: [Todo] = []
            var owner = "nobody"              // absent in older data
        }
        @StreamedState(persisted: true) var state: State = State()
        @StreamedEvents(persisted: true, keeping: 1_000) var moves: Reminder
    }

    @Trebuchet
    distributed actor Migrated {
        struct State: Codable, Sendable { var todos: [Todo] = [] }
        @StreamedState(persisted: true, version: 2, migrate: { json, from in
            json["todos"]?.mutateEach { todo in
                todo["title"] = todo["text"]
                todo["text"] = nil
                todo["priority"] = 3
            }
        }) var state: State = State()
    }
}

private enum ClientGuide {
    @Trebuchet
    distributed actor TodoList {
        distributed func addTodo(title: String) -> Todo { Todo(id: "1", title: title) }
    }

    static func connect() async throws {
        var options = TrebuchetClient.Options()
        options.callTimeout = .seconds(5)
        options.reconnect.maximumDelay = .seconds(60)
        let client = TrebuchetClient(transport: .webSocket(host: "localhost", port: 8080), options: options)
        try await client.connect()
        let todos = try client.resolve(TodoList.self, id: "todos")
        print(try await todos.addTodo(title: "Milk").title)     // Milk
    }
}

private enum ClusterGuide {
    @Trebuchet
    distributed actor Match {}

    static func serve() async throws {
        let engine = try RedisEngine(url: "redis://127.0.0.1:6379")
        for warning in try await engine.check() { print(warning) }
        let server = TrebuchetServer(
            transport: .webSocket(port: 8080), cluster: try ClusterMembership(of: "east-1", at: engine))
        server.expose(Match.self, as: "matches/*", idle: .seconds(300), placement: .cluster) { id in Match(actorSystem: server.actorSystem) }
        try await server.run()
        await engine.close()
    }

    static func link(_ engine: RedisEngine) throws {
        _ = try ClusterMembership(of: "east-1", at: engine, address: NodeAddress(host: "10.0.0.5", port: 7600))
        _ = try ClusterMembership(of: "east-1", at: engine, dataLossPolicy: .continue)
    }
}

private enum ObservabilityGuide {
    @Trebuchet
    distributed actor Diary {
        @Redacted distributed func open(with code: String) throws {}
        distributed func add(_ text: String) {}
    }

    static func expose(_ server: TrebuchetServer) async {
        await server.expose(Diary(actorSystem: server.actorSystem), as: "diary", inspectable: false)    // neither arguments nor states
    }

    final class Refusals: ServerEventHandler {
        let kinds: ServerEvent.Kinds = [.rejections, .limits]
        func handle(_ event: ServerEvent) { if case .limitReached(let setting, _) = event { print(setting) } }
    }

    static func handle(_ server: TrebuchetServer) {
        server.addEventHandler(Refusals())
    }

    static func logged(_ transport: ServerTransport) -> TrebuchetServer {
        TrebuchetServer(transport: transport, log: ServerLog(level: .info, format: .json))
    }

    static func trace(_ server: TrebuchetServer, _ request: HTTPRequestHead, _ list: Diary) async throws {
        let spans = try OTLPExporter(url: "http://localhost:4318", service: "shop", instance: "node-1")
        server.addEventHandler(spans)
        server.setTraceSamplingRatio(0.01)

        var options = TrebuchetClient.Options()
        options.traceSampling = 0.01     // begins traces; 0 by default
        options.onSpanEnd = spans.export // nil by default: then only the server has spans
        try await TraceContext.with(TraceContext(request.headers["traceparent"] ?? "")) {
            try await list.add("Milk")
        }
        await spans.flush()
    }
}

private enum AdminGuide {
    static func serve(_ server: TrebuchetServer, _ store: SQLiteStore, _ accounts: Accounts) async throws {
        let collections = CollectionHost.expose(on: server, store: store)
        let rooms = RoomHost.expose(on: server)
        let admin = try AdminSocket.open(
            on: server, at: "chat.db.admin", collections: collections, rooms: rooms, accounts: accounts)
        try await server.run()
        admin.close()
    }
}

private enum ServicesGuide {
    static func serve() async throws {
        let store = try SQLiteStore(path: "chat.db")
        let accounts = try await Accounts(store: store, mailer: ClosureMailer { code, address in print(address, code) })
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 8080), access: accounts.accessPolicy, store: store)
        await server.expose(AuthService(accounts, actorSystem: server.actorSystem), as: AuthService.name)
        RoomHost.expose(on: server)
        CollectionHost.expose(on: server, store: store)             // without a store: in memory
        // … and user-defined actors
        try await server.run()
        await store.close()
    }

    static func serveNode(_ server: TrebuchetServer, _ mailer: any MagicCodeMailer) async throws {
        let engine = try RedisEngine(url: "redis://127.0.0.1:6379")
        let accounts = try await Accounts(engine: engine, mailer: mailer)       // instead of a store
        RoomHost.expose(on: server, placement: .cluster)
        CollectionHost.expose(on: server, placement: .cluster)      // documents are in the coordination store, not in a `store`
        _ = accounts
    }

    static func providers(_ store: SQLiteStore, _ mailer: any MagicCodeMailer) async throws {
        _ = try await Accounts(store: store, mailer: mailer, providers: [.google(clientID: "…"), .apple(clientID: "…")])
    }
}

import ToolOptions
import Trebuchet
import TrebuchetCluster
import TrebuchetNodes
import TrebuchetRedis
import TrebuchetServices
import TrebuchetStore

/// `Consistency office FILE PORT` and `Consistency office REDIS NAME PORT`: all services, in a process that can be killed; what
/// `trebuchet serve --data` and `serve --cluster` host, with rules that hide documents and rooms.
enum ServicesServer {
    private static var limits: ServerLimits {
        var limits = ServerLimits()
        // Short, so that half-open connections are detected while the seed runs.
        limits.connections.pingInterval = .seconds(2)
        limits.connections.pongTimeout = .seconds(2)
        return limits
    }

    private static let mailer = ClosureMailer { _, _ in }

    static func run(_ words: [String]) async throws {
        guard let port = words.last.flatMap({ Int($0) }) else { throw WrongUse("office: no port") }
        switch words.count {
        case 2: try await run(file: words[0], port: port)
        case 3: try await run(redis: words[0], name: words[1], port: port)
        default: throw WrongUse("office: FILE PORT or REDIS NAME PORT")
        }
    }

    private static func run(file: String, port: Int) async throws {
        var options = SQLiteStore.Options()
        // The seed ends processes, not the machine.
        options.durability = .processEnd
        let store = try SQLiteStore(path: file, options: options)
        let accounts = try await Accounts(store: store, mailer: mailer)
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: port), reactors: 2, limits: limits,
            access: access(accounts), store: store)
        RoomHost.expose(on: server, rules: ServicesRules())
        CollectionHost.expose(on: server, store: store, rules: ServicesRules())
        try await serve(server, accounts)
        await store.close()
    }

    private static func run(redis: String, name: String, port: Int) async throws {
        let engine = try RedisEngine(url: redis, durability: .engine)
        let accounts = try await Accounts(engine: engine, mailer: mailer)
        var settings = ClusterMemberSettings()
        // Short, so that a seed contains leases that expire.
        settings.leaseDuration = .seconds(2)
        settings.leaseMargin = .milliseconds(250)
        settings.roundInterval = .milliseconds(100)
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: port), reactors: 2, limits: limits,
            access: access(accounts), cluster: try ClusterMembership(of: name, at: engine, settings: settings))
        RoomHost.expose(on: server, rules: ServicesRules(), placement: .cluster)
        CollectionHost.expose(on: server, rules: ServicesRules(), placement: .cluster)
        try await serve(server, accounts)
        await engine.close()
    }

    private static func access(_ accounts: Accounts) -> AccessPolicy {
        var access = accounts.accessPolicy
        access.identifiesCallers = true
        return access
    }

    private static func serve(_ server: TrebuchetServer, _ accounts: Accounts) async throws {
        await server.expose(AuthService(accounts, actorSystem: server.actorSystem), as: AuthService.name)
        try await server.serveJudge(drain: .seconds(5))
    }
}

/// Every guest reads all notes and changes its own and the shared one; only its writer has access to a diary.
struct ServicesRules: CollectionRules, RoomRules {
    func isAllowed(
        _ principal: Principal?, _ action: CollectionAction, _ document: Document, in collection: String
    ) -> Bool {
        let isOwn = principal != nil && document.creator == principal?.id
        if collection == Note.diary { return isOwn }
        return action == .read || isOwn || document.id == DocumentID(Note.shared)
    }

    func hasUniformReaders(in collection: String) -> Bool { collection != Note.diary }

    func canJoin(_ principal: Principal?, _ room: String) -> Bool { principal != nil && room != "office-locked" }
    func canList(_ principal: Principal?, _ room: String) -> Bool { false }
}

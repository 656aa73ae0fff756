import Trebuchet
import TrebuchetServices
import TrebuchetStore

/// `Consistency office FILE PORT`: all services, in a process that can be killed; what `trebuchet serve --data` hosts, with rules
/// that hide.
enum ServicesServer {
    static func run(file: String, port: Int) async throws {
        var limits = ServerLimits()
        // Short, so that half-open connections are detected while the seed runs.
        limits.pingInterval = .seconds(2)
        limits.pongTimeout = .seconds(2)
        var options = SQLiteStore.Options()
        // The seed ends processes, not the machine.
        options.durability = .processEnd
        let store = try SQLiteStore(path: file, options: options)
        let accounts = try await Accounts(store: store, mailer: ClosureMailer { _, _ in })
        var access = accounts.accessPolicy
        access.identifiesCallers = true
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: port), reactors: 2, limits: limits, access: access,
            store: store)
        await server.expose(AuthService(accounts, actorSystem: server.actorSystem), as: AuthService.name)
        RoomHost.expose(on: server, rules: ServicesRules())
        CollectionHost.expose(on: server, store: store, rules: ServicesRules())
        try await server.serveJudge(drain: .seconds(1))
        await store.close()
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

import Foundation
import Synchronization
import Testing
import Trebuchet

@testable import TrebuchetServices

/// A server with all services and a socket for administrators.
struct AdminTestEnvironment {
    let server: TrebuchetServer
    let address: SocketAddress
    let collections: CollectionHost
    let rooms: RoomHost
    let accounts: Accounts
    let socket: AdminSocket
    let log: Log
    private let folder: TemporaryFolder

    final class Log: Sendable {
        private let logged = Mutex<[String]>([])

        var lines: [String] { logged.withLock { $0 } }
        func add(_ line: String) { logged.withLock { $0.append(line) } }
    }

    static func run(
        store: any StateStore = MemoryStore(), isolation: isolated (any Actor)? = #isolation,
        _ body: (AdminTestEnvironment) async throws -> Void
    ) async throws {
        let log = Log()
        let accounts = try await Accounts(store: store, mailer: ClosureMailer { _, _ in })
        var access = accounts.accessPolicy
        access.identifiesCallers = true
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0), access: access, log: ConsoleLog { log.add($0) })
        await server.expose(AuthService(accounts, actorSystem: server.actorSystem), as: AuthService.name)
        let collections = CollectionHost.expose(on: server, store: store)
        let rooms = RoomHost.expose(on: server)
        let folder = try TemporaryFolder()
        let environment = AdminTestEnvironment(
            server: server, address: try await server.start(), collections: collections, rooms: rooms,
            accounts: accounts,
            socket: try AdminSocket.open(
                on: server, at: folder.path + "/a.admin", collections: collections, rooms: rooms, accounts: accounts),
            log: log, folder: folder)
        do {
            try await body(environment)
        } catch {
            await environment.end()
            throw error
        }
        await environment.end()
    }

    private func end() async {
        socket.close()
        await server.shutdown(drain: .zero)
    }

    func admin() throws -> Admin { Admin(link: try AdminConnection.connect(to: socket.path)) }

    func guest() async throws -> CollectionTestClient {
        let client = TrebuchetClient(transport: .webSocket(host: address.host, port: address.port))
        try await client.connect()
        return CollectionTestClient(client)
    }
}

/// An administrator's connection, without the CLI.
struct Admin {
    struct Failed: Error, Equatable { let reason: String }

    let link: AdminConnection

    func ask(_ request: AdminRequest) async throws -> AdminResponse {
        try await link.write(request)
        try await link.flush()
        return try await answer()
    }

    func answer() async throws -> AdminResponse {
        let answer = try #require(try await link.next(AdminResponse.self))
        if case .failed(let reason) = answer { throw Failed(reason: reason) }
        return answer
    }

    func documents(_ collection: String, after: String? = nil, limit: Int = 100) async throws -> [Document] {
        guard case .documents(let found) = try await ask(.documents(collection: collection, after: after, limit: limit))
        else { return [] }
        return found
    }

    func restore(_ documents: [Document], replaces: Bool, in name: String = "todos") async throws -> ImportOutcome? {
        let answer = try await ask(.restore(collection: name, documents: documents, replaces: replaces))
        guard case .restored(let outcome) = answer else { return nil }
        return outcome
    }

    func isDone(_ request: AdminRequest) async throws -> Bool? {
        let answer = try await ask(request)
        if case .granted(let isNew, let warning) = answer { return warning == nil ? isNew : nil }
        guard case .done(let isDone) = answer else { return nil }
        return isDone
    }
}

import Networking
import Relays
import Synchronization
import TestSupport
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices

/// A clock that advances only when a test advances it.
final class VirtualTime: Sendable {
    private let milliseconds = Mutex<Int64>(1_800_000_000_000)

    var now: Int64 { milliseconds.withLock { $0 } }
    func advance(by duration: Duration) { milliseconds.withLock { $0 += duration.wholeMilliseconds } }
}

/// The behaviour of a server's replaceable parts: they work, fail, or wait.
enum PartState: Sendable { case working, broken, paused }

struct Broken: Error {}

extension StateRelay<PartState> {
    /// Returns when the part works; throws when it is broken.
    func pass() async throws {
        for await state in stream {
            switch state {
            case .working: return
            case .broken: throw Broken()
            case .paused: continue
            }
        }
        throw CancellationError()
    }
}

/// A store for accounts in memory, which a test can make fail or wait.
struct TestStore: StateStore {
    let memory: MemoryStore
    let part: StateRelay<PartState>

    func get(_ keys: [StateKey]) async throws(StateStoreError) -> [StateKey: [UInt8]] {
        try await pass()
        return try await memory.get(keys)
    }

    func list(
        _ namespace: String, prefix: String, after: String?, limit: Int
    ) async throws(StateStoreError) -> [StateEntry] {
        try await pass()
        return try await memory.list(namespace, prefix: prefix, after: after, limit: limit)
    }

    func readLog(_ key: StateKey) async throws(StateStoreError) -> StoredLog? { try await memory.readLog(key) }

    func write(_ writes: [StateWrite]) async throws(StateStoreError) {
        try await pass()
        try await memory.write(writes)
    }

    private func pass() async throws(StateStoreError) {
        do {
            try await part.pass()
        } catch {
            throw StateStoreError(.failed, "\(error)")
        }
    }

    /// The names without their prefix.
    func names(_ prefix: String) async throws -> [String] {
        try await memory.list("auth", prefix: prefix).map { String($0.key.name.dropFirst(prefix.count)) }
    }
}

/// Records the sent codes.
struct Mailbox: MagicCodeMailer {
    let part: StateRelay<PartState>
    private let mails = StateRelay<[[String]]>([])
    private let sentNotices = StateRelay<[String]>([])

    init(part: StateRelay<PartState>) { self.part = part }

    var count: Int { mails.currentValue.count }

    func send(_ code: String, to address: String) async throws {
        try await part.pass()
        mails.update { $0.append([address, code]) }
    }

    func send(_ notice: AccountNotice, to address: String) async throws {
        try await part.pass()
        sentNotices.update { $0.append("\(address): \(notice)") }
    }

    var notices: [String] { sentNotices.currentValue }

    /// The latest code for an address.
    func code(for address: String) -> String? { mails.currentValue.last { $0[0] == address }?[1] }
}

/// Records the users whose app data was deleted.
struct Deletions: Sendable {
    let part = StateRelay<PartState>(.working)
    let users = Journal()

    func delete(_ user: User) async throws {
        try await part.pass()
        users.record(user.id)
    }
}

/// Returns the identity of its caller.
@Trebuchet
distributed actor ServiceCallerReporter {
    distributed func caller() -> String? { Caller.current?.principal?.id }
    distributed func email() -> String? { Caller.current?.principal?.claims["email"] }
    distributed func roles() -> [String] { Caller.current?.principal?.roles.sorted() ?? [] }
}

/// A server with accounts, whose store and clock outlive it.
final class AuthServer: Sendable {
    let part = StateRelay<PartState>(.working)
    let store: TestStore
    let mailbox: Mailbox
    let time: VirtualTime
    let server: TrebuchetServer
    let accounts: Accounts
    /// The lines of its log.
    let lines = Journal()
    /// Deletes the app's data.
    let deletions: Deletions
    let port: Int

    init(
        limits: AuthLimits = AuthLimits(), providers: [OpenIDProvider] = [], store: TestStore? = nil,
        time: VirtualTime = VirtualTime(), port: Int = 0
    ) async throws {
        let deletions = Deletions()
        self.deletions = deletions
        let lines = lines
        self.store = TestStore(memory: store?.memory ?? MemoryStore(), part: part)
        mailbox = Mailbox(part: part)
        self.time = time
        accounts = try await Accounts(
            store: self.store, mailer: mailbox, providers: providers, limits: limits,
            log: ConsoleLog { lines.record($0) },
            onDelete: { try await deletions.delete($0) }, now: { time.now })
        var access = accounts.accessPolicy
        access.trustedProxies = ["127.0.0.1"]
        server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: port), reactors: 2, access: access)
        await server.expose(AuthService(accounts, actorSystem: server.actorSystem), as: AuthService.name)
        await server.expose(ServiceCallerReporter(actorSystem: server.actorSystem), as: "mirror")
        self.port = try await server.start().port
    }

    /// A restarted process at this address, with this store.
    func restarted() async throws -> AuthServer {
        await stop()
        return try await AuthServer(store: store, time: time, port: port)
    }

    func stop() async { await server.shutdown(drain: .zero) }

    func transport(_ link: TestLink = .webSocket) -> TrebuchetTransport {
        switch link {
        case .webSocket: .webSocket(host: "127.0.0.1", port: port)
        case .local: .local(server)
        }
    }

    func backend(
        _ link: TestLink = .webSocket, credentials: any CredentialStore = InMemoryCredentialStore(),
        alarm: Alarm = Alarm()
    ) -> TrebuchetBackend {
        var options = TrebuchetBackend.options
        options.reconnect.maximumDelay = .milliseconds(20)
        return TrebuchetBackend(
            transport: transport(link), credentials: credentials, options: options
        ) { try await alarm.wait($0) }
    }

    /// A client that connects with a token, without a backend.
    ///
    /// - Parameter host: the origin that it claims, as a proxy does.
    func client(
        _ link: TestLink = .webSocket, token: String = "", from host: String? = nil
    ) async throws -> TrebuchetClient {
        var options = TrebuchetClient.Options()
        if let host { options.headers.add("X-Forwarded-For", host) }
        options.token = { token }
        options.reconnect = .never
        let client = TrebuchetClient(transport: transport(link), options: options)
        try await client.connect()
        return client
    }
}

extension TrebuchetClient {
    var auth: AuthService {
        get throws { try resolve(AuthService.self, id: AuthService.name) }
    }

    /// Returns when its authorization has been revoked: its connection's reactor learns of this a moment later.
    func waitUntilRevoked() async {
        _ = await eventually {
            do {
                _ = try await self.caller()
                return false
            } catch {
                return true
            }
        }
    }

    /// The principal of this client at its server.
    func caller() async throws -> String? { try await resolve(ServiceCallerReporter.self, id: "mirror").caller() }
}

/// A replacement for waiting: returns when the test rings, however long that takes.
final class Alarm: Sendable {
    private let rings = StateRelay(0)
    let asked = Journal()

    func ring() { rings.update { $0 += 1 } }

    func wait(_ duration: Duration) async throws {
        let before = rings.currentValue
        asked.record("\(duration)")
        for await count in rings.stream where count > before { return }
        throw CancellationError()
    }
}

import Relays
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetCluster

@testable import TrebuchetServices

/// Returns the identity of its caller.
@Trebuchet
distributed actor SignedInCallerReporter {
    distributed func caller() -> String? { Caller.current?.principal?.id }
    distributed func roles() -> [String] { Caller.current?.principal?.roles.sorted() ?? [] }
}

/// Records the sent codes.
final class Mailbox: MagicCodeMailer {
    private let mails = Mutex<[(address: String, code: String)]>([])

    func send(_ code: String, to address: String) async throws { mails.withLock { $0.append((address, code)) } }
    func send(_ notice: AccountNotice, to address: String) async throws {}

    /// The latest code for an address.
    func code(for address: String) throws -> String {
        try #require(mails.withLock { $0.last { $0.address == address }?.code })
    }
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

/// A server whose accounts are shared with other nodes.
final class AuthNode: Sendable {
    let engineRoute: TableEngineRoute
    let accounts: Accounts
    let alarm = Alarm()
    let server: TrebuchetServer
    /// The lines of its log.
    let lines = Journal()
    private let port: Int

    fileprivate init(
        _ engine: MemoryEngine, _ clock: ManualEngineClock, _ mailbox: Mailbox, _ limits: AuthLimits
    ) async throws {
        let (alarm, lines) = (alarm, lines)
        engineRoute = TableEngineRoute(engine)
        accounts = try await Accounts(
            engine: engineRoute, mailer: mailbox, limits: limits, log: ConsoleLog { lines.record($0) },
            now: { 1_800_000_000_000 + Int64(clock.milliseconds) }
        ) { try await alarm.wait($0) }
        var access = accounts.accessPolicy
        access.trustedProxies = ["127.0.0.1"]
        server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 1, access: access, log: nil)
        await server.expose(AuthService(accounts, actorSystem: server.actorSystem), as: AuthService.name)
        await server.expose(SignedInCallerReporter(actorSystem: server.actorSystem), as: "mirror")
        port = try await server.start().port
    }

    /// - Parameters:
    ///   - token: an access token.
    ///   - host: the origin that it claims, as a proxy does.
    func client(token: String = "", from host: String? = nil) async throws -> TrebuchetClient {
        var options = TrebuchetClient.Options()
        if let host { options.headers.add("X-Forwarded-For", host) }
        options.token = { token }
        options.reconnect = .never
        let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: port), options: options)
        try await client.connect()
        return client
    }
}

/// Two nodes, one coordination store, and its clock.
struct AuthNodes {
    let engine: MemoryEngine
    let clock = ManualEngineClock()
    let mailbox = Mailbox()
    let a: AuthNode
    let b: AuthNode

    /// Both start concurrently.
    static func run(
        _ limits: AuthLimits = AuthLimits(), engine engineLimits: ClusterEngineLimits = ClusterEngineLimits(),
        _ body: (AuthNodes) async throws -> Void
    ) async throws {
        let nodes = try await AuthNodes(limits, engineLimits)
        try await body(nodes)
        await nodes.a.server.shutdown(drain: .zero)
        await nodes.b.server.shutdown(drain: .zero)
    }

    private init(_ limits: AuthLimits, _ engineLimits: ClusterEngineLimits) async throws {
        let (clock, mailbox) = (clock, mailbox)
        let engine = MemoryEngine(limits: engineLimits, clock: clock)
        self.engine = engine
        async let first = AuthNode(engine, clock, mailbox, limits)
        async let second = AuthNode(engine, clock, mailbox, limits)
        (a, b) = try await (first, second)
    }

    /// Starts another node, long after the first ones.
    func anotherNode() async throws -> AuthNode { try await AuthNode(engine, clock, mailbox, AuthLimits()) }

    /// Signs an address in at a node.
    func signIn(_ address: String, at node: AuthNode) async throws -> (client: TrebuchetClient, grant: SessionGrant) {
        let client = try await node.client()
        _ = try await client.auth.sendMagicCode(to: address)
        let code = try mailbox.code(for: address)
        return (client, try await client.auth.verifyMagicCode(email: address, code: code))
    }
}

extension TrebuchetClient {
    var auth: AuthService {
        get throws { try resolve(AuthService.self, id: AuthService.name) }
    }

    private var mirror: SignedInCallerReporter {
        get throws { try resolve(SignedInCallerReporter.self, id: "mirror") }
    }

    /// The principal of this client at its server.
    func caller() async throws -> String? { try await mirror.caller() }

    func roles() async throws -> [String] { try await mirror.roles() }

    /// Returns true if the client loses its authorization within the time of a test.
    func losesItsRights() async -> Bool {
        await eventually {
            do {
                _ = try await self.caller()
                return false
            } catch {
                return (error as? TrebuchetError)?.code == .unauthenticated
            }
        }
    }
}

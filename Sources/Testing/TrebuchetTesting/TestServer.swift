internal import Networking
internal import Synchronization
public import Trebuchet

/// A server for one test that can be stopped, killed and started again. Its port of 127.0.0.1 stays reserved
/// meanwhile.
///
///     try await withTestServer(store: MemoryStore()) { server in
///         await server.expose(Diary(actorSystem: server.actorSystem), as: "diary")
///     } body: { test in
///         let diary = try await test.connect().resolve(Diary.self, id: "diary")
///         try await diary.write("a")
///         await test.kill()
///         try await test.restart()
///         #expect(try await diary.read() == ["a"])
///     }
///
/// Each start creates another `TrebuchetServer` and prepares it again: state outside the store has its initial values.
public final class TestServer: Sendable {
    /// Exposes actors. Called for each server, before it listens.
    public typealias Prepare = @Sendable (TrebuchetServer) async throws -> Void

    /// A started server with its store.
    private struct Running {
        let server: TrebuchetServer
        let store: RevocableStore?
    }

    /// The address of the server, which stays reserved while the server does not listen.
    public let address: SocketAddress
    private let reservation: PortReservation
    private let make: @Sendable (_ port: Int) -> Running
    private let prepare: Prepare
    private let clock: TestTime?
    /// The current or the last server.
    private let running: Mutex<Running>
    private let clients = Mutex<[TrebuchetClient]>([])

    /// Starts a server on a free port.
    ///
    /// - Parameters:
    ///   - store: the store of persisted states, kept across restarts.
    ///   - clock: the time of the server and its clients; then `reactors` is the clock's.
    ///   - prepare: exposes the actors; called for each start.
    public init(
        reactors: Int? = nil, limits: ServerLimits = ServerLimits(), access: AccessPolicy = .open,
        store: (any StateStore)? = nil, showsErrorText: Bool = false, clock: TestTime? = nil,
        prepare: @escaping Prepare
    ) async throws {
        self.clock = clock
        make = { port in
            let own = store.map { RevocableStore($0) }
            let server = TrebuchetServer(
                transport: .webSocket(port: port),
                on: clock?.serverReactors ?? .forServer(count: reactors),
                holding: clock, limits: limits, access: access, store: own, showsErrorText: showsErrorText,
                log: ConsoleLog())
            return Running(server: server, store: own)
        }
        self.prepare = prepare
        let first = make(0)
        try await prepare(first.server)
        address = try await first.server.start()
        reservation = PortReservation(address)
        running = Mutex(first)
    }

    /// The current server; after `kill()` and `stop()` the last one.
    public var server: TrebuchetServer { running.withLock { $0.server } }

    /// Returns a connected client, which is closed with the test server.
    public func connect(_ options: TrebuchetClient.Options = .init()) async throws -> TrebuchetClient {
        let client = TrebuchetClient(
            transport: TrebuchetTransport.webSocket(host: address.host, port: address.port), options: options,
            on: clock?.clientReactor ?? ReactorGroup.client, holding: clock)
        clients.withLock { $0.append(client) }
        try await client.connect()
        return client
    }

    /// Stops the server in order, like `shutdown`: clients are drained, in-flight calls may complete within `drain`,
    /// states are written. Later connections are refused.
    public func stop(drain: Duration = .seconds(10)) async { await server.shutdown(drain: drain) }

    /// Ends the server as if its process had been killed: connections are cut without notice, and only the writes
    /// already running in the store complete. Later connections are refused. The tasks of its actors continue in this
    /// process, without effect outside.
    ///
    /// When it returns, the server's ends of all connections are closed, and the clients of ``connect(_:)`` have lost
    /// theirs: their next calls wait for the next server. Other clients notice the end later.
    public func kill() async {
        let killed = running.withLock { $0 }
        await killed.server.cut()
        await killed.store?.revoke()
        for client in clients.withLock({ $0 }) {
            for await state in client.connectionState.stream where state != .connected { break }
        }
    }

    /// Stops the server in order, unless it has been stopped or killed, and starts a prepared one again.
    public func restart(drain: Duration = .seconds(10)) async throws {
        if server.address != nil { await stop(drain: drain) }
        let next = make(address.port)
        try await prepare(next.server)
        try await next.server.start()
        running.withLock { $0 = next }
    }

    /// Closes its clients, and stops the server without a drain.
    public func shutDown() async {
        let clients = clients.withLock { clients in
            defer { clients = [] }
            return clients
        }
        for client in clients { await client.close() }
        await stop(drain: .zero)
    }
}

/// Runs a test with a server that the test can stop, kill and start again; see ``TestServer``.
public func withTestServer<Result>(
    reactors: Int? = nil, limits: ServerLimits = ServerLimits(), access: AccessPolicy = .open,
    store: (any StateStore)? = nil, showsErrorText: Bool = false, clock: TestTime? = nil,
    isolation: isolated (any Actor)? = #isolation,
    prepare: @escaping TestServer.Prepare, body: (TestServer) async throws -> Result
) async throws -> Result {
    let server = try await TestServer(
        reactors: reactors, limits: limits, access: access, store: store, showsErrorText: showsErrorText, clock: clock,
        prepare: prepare)
    do {
        let result = try await body(server)
        await server.shutDown()
        return result
    } catch {
        await server.shutDown()
        throw error
    }
}

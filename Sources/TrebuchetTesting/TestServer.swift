internal import Networking
internal import Synchronization
public import Trebuchet

/// A server for one test that can be stopped, killed and started again, on a port of 127.0.0.1 that stays its own meanwhile.
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
/// Each start makes another `TrebuchetServer` and prepares it anew: what is not in the store is as in the beginning.
public final class TestServer: Sendable {
    /// Exposes actors; called for each server, before it listens.
    public typealias Prepare = @Sendable (TrebuchetServer) async throws -> Void

    private struct Running {
        let server: TrebuchetServer
        let store: RevocableStore?
    }

    /// Where it listens, and nobody else while it does not.
    public let address: SocketAddress
    private let reservation: PortReservation
    private let make: @Sendable (_ port: Int) -> Running
    private let prepare: Prepare
    private let clock: TestTime?
    /// The one of now, or the last one.
    private let running: Mutex<Running>
    private let clients = Mutex<[TrebuchetClient]>([])

    /// Starts it on a free port.
    ///
    /// - Parameters:
    ///   - store: where persisted states are kept over restarts.
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
                transport: TrebuchetTransport.webSocket(port: port),
                on: clock?.serverReactors ?? .forServer(count: reactors),
                holding: clock, limits: limits, access: access, store: own, showsErrorText: showsErrorText,
                log: ServerLog.standardError)
            return Running(server: server, store: own)
        }
        self.prepare = prepare
        let first = make(0)
        try await prepare(first.server)
        address = try await first.server.start()
        reservation = PortReservation(address)
        running = Mutex(first)
    }

    /// The server of now; after `kill()` and `stop()` the one that was.
    public var server: TrebuchetServer { running.withLock { $0.server } }

    /// A client that is connected, and closed with the test server.
    public func connect(_ options: TrebuchetClient.Options = .init()) async throws -> TrebuchetClient {
        let client = TrebuchetClient(
            transport: TrebuchetTransport.webSocket(host: address.host, port: address.port), options: options,
            on: clock?.clientReactor ?? ReactorGroup.client, holding: clock)
        clients.withLock { $0.append(client) }
        try await client.connect()
        return client
    }

    /// Stops it in order, as `shutdown` does: clients are sent away, calls under way may end for at most `drain`, states are written.
    /// Who connects then is refused.
    public func stop(drain: Duration = .seconds(10)) async { await server.shutdown(drain: drain) }

    /// Ends it as if its process had been killed: connections are cut, nobody is told, and nothing is written any more but what the
    /// store was writing. Who connects then is refused. What its actors are doing goes on in this process, and reaches nobody.
    ///
    /// When it returns the server's ends of all connections are closed. Clients notice by themselves, a moment later, as they would
    /// of a machine that has gone.
    public func kill() async {
        let killed = running.withLock { $0 }
        await killed.server.cut()
        await killed.store?.revoke()
    }

    /// Stops it in order, unless it has been stopped or killed, and starts it again, prepared anew.
    public func restart(drain: Duration = .seconds(10)) async throws {
        if server.address != nil { await stop(drain: drain) }
        let next = make(address.port)
        try await prepare(next.server)
        try await next.server.start()
        running.withLock { $0 = next }
    }

    /// Closes its clients, and stops it without waiting.
    public func end() async {
        let clients = clients.withLock { clients in
            defer { clients = [] }
            return clients
        }
        for client in clients { await client.close() }
        await stop(drain: .zero)
    }
}

/// The same for a test that stops, kills or starts its server again.
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
        await server.end()
        return result
    } catch {
        await server.end()
        throw error
    }
}

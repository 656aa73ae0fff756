internal import Networking
public import Trebuchet

/// Runs a test with a server and a client that is connected to it.
///
///     try await withTestServer { server in
///         await server.expose(Counter(actorSystem: server.actorSystem), as: "counter")
///     } body: { client, _ in
///         let counter = try client.resolve(Counter.self, id: "counter")
///         …
///     }
///
/// A test that stops and restarts the server has a `TestServer` as the only argument of its body.
///
/// - Parameters:
///   - link: the connection between client and server. Run a test with each to check that it depends on neither.
///   - access: the access policy. `options.token` is the client's token.
///   - showsErrorText: whether callers get the text of errors that are not `Codable`.
///   - clock: the time of the server and its client, for a test that advances it; then `reactors` is the clock's.
public func withTestServer<Result>(
    link: TestLink = .webSocket, reactors: Int? = nil, limits: ServerLimits = ServerLimits(),
    options: TrebuchetClient.Options = .init(), access: AccessPolicy = .open, store: (any StateStore)? = nil,
    showsErrorText: Bool = false, clock: TestTime? = nil,
    isolation: isolated (any Actor)? = #isolation,
    prepare: (TrebuchetServer) async throws -> Void,
    body: (TrebuchetClient, TrebuchetServer) async throws -> Result
) async throws -> Result {
    let server = TrebuchetServer(
        transport: .webSocket(port: 0), on: clock?.serverReactors ?? .forServer(count: reactors), holding: clock,
        limits: limits, access: access, store: store, showsErrorText: showsErrorText, log: ConsoleLog())
    try await prepare(server)
    let address = try await server.start()
    let transport: TrebuchetTransport =
        switch link {
        case .webSocket: .webSocket(host: address.host, port: address.port)
        case .local: .local(server)
        }
    var options = options
    // The default is for networks. On a busy machine the server may answer later, and the test has its own time limit.
    if options.connectTimeout == TrebuchetClient.Options().connectTimeout { options.connectTimeout = .seconds(120) }
    let client = TrebuchetClient(
        transport: transport, options: options, on: clock?.clientReactor ?? ReactorGroup.client, holding: clock)
    do {
        try await client.connect()
        let result = try await body(client, server)
        await client.close()
        await server.shutdown(drain: .zero)
        return result
    } catch {
        await client.close()
        await server.shutdown(drain: .zero)
        throw error
    }
}

/// The connection between a test's client and its server.
public enum TestLink: Sendable, CaseIterable {
    /// A real socket on localhost.
    case webSocket
    /// An in-process link with the same messages.
    case local
}

internal import Networking
public import Trebuchet

/// A server for one test, and clients that are connected to it.
///
///     try await withTestServer { server in
///         await server.expose(Counter(actorSystem: server.actorSystem), as: "counter")
///     } body: { client, _ in
///         let counter = try client.resolve(Counter.self, id: "counter")
///         …
///     }
///
/// A test that needs the server to go and come back has a `TestServer` as the only argument of its body.
///
/// - Parameters:
///   - link: how the client reaches the server; run a test over each to see that it depends on neither.
///   - access: who may connect. `options.token` is what the client shows.
///   - showsErrorText: whether callers get the text of errors that are not `Codable`.
///   - clock: the time of the server and its client, for a test that turns it on; then `reactors` is the clock's.
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
        limits: limits, access: access, store: store, showsErrorText: showsErrorText, log: ServerLog.standardError)
    try await prepare(server)
    let address = try await server.start()
    let transport: TrebuchetTransport =
        switch link {
        case .webSocket: .webSocket(host: address.host, port: address.port)
        case .local: .local(server)
        }
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

/// How a test's client reaches its server.
public enum TestLink: Sendable, CaseIterable {
    /// A real socket on localhost.
    case webSocket
    /// An object in this process; the messages are the same.
    case local
}

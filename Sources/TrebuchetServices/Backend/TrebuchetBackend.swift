internal import Synchronization
public import Trebuchet

/// The services of one server, as a client uses them: what the keys of `@Shared` values (`.trebuchetAuth`, …) speak to.
///
///     TrebuchetBackend.use(
///         TrebuchetBackend(
///             transport: .webSocket(host: "localhost", port: 8080), credentials: FileCredentialStore(path: file)))
public final class TrebuchetBackend: Sendable {
    /// Speaks to the server; all keys of this backend share its one connection.
    public let client: TrebuchetClient
    let rooms: JoinedRooms
    /// Who is signed in.
    let session: SessionKeeper
    let collections: CollectionLinks

    private static let standard = Mutex<TrebuchetBackend?>(nil)
    /// Goes before the one of the process; for tests, and for apps that speak to several servers.
    @TaskLocal private static var scoped: TrebuchetBackend?

    /// A backend that shows its server who is signed in with each connection, and remembers it.
    ///
    /// - Parameters:
    ///   - credentials: where the session is kept, to go on after a restart. Default: in memory.
    ///   - options: of the client; their `token` is not used. Default: ``options``.
    public convenience init(
        transport: TrebuchetTransport, credentials: any CredentialStore = InMemoryCredentialStore(),
        options: TrebuchetClient.Options = TrebuchetBackend.options
    ) {
        self.init(transport: transport, credentials: credentials, options: options) { try await Task.sleep(for: $0) }
    }

    /// - Parameter sleep: waits until a session is to be renewed.
    package init(
        transport: TrebuchetTransport, credentials: any CredentialStore, options: TrebuchetClient.Options,
        sleep: @escaping @Sendable (Duration) async throws -> Void
    ) {
        let session = SessionKeeper(transport: transport, credentials: credentials, sleep: sleep)
        var options = options
        options.token = { try await session.token() }
        client = TrebuchetClient(transport: transport, options: options)
        session.use(client)
        self.session = session
        rooms = JoinedRooms(client, session.signIns)
        collections = CollectionLinks(session)
        session.report(to: collections)
    }

    /// A backend with a client of one's own, connected by whatever is used first if it is not yet. Who is signed in is not
    /// remembered, and a connection that was made again is signed in a moment later, by a call.
    public init(client: TrebuchetClient) {
        self.client = client
        session = SessionKeeper()
        session.use(client)
        rooms = JoinedRooms(client, session.signIns)
        collections = CollectionLinks(session)
        session.report(to: collections)
    }

    /// Those of a client, except that its first connection is tried again too when it fails.
    public static var options: TrebuchetClient.Options {
        var options = TrebuchetClient.Options()
        options.reconnect.retriesFirstConnection = true
        return options
    }

    /// Connects the client if nothing has yet, and does not wait.
    package func connect() { client.connectIfNeeded() }

    /// The backend of keys that name none.
    public static var current: TrebuchetBackend? { scoped ?? standard.withLock { $0 } }

    /// Makes a backend the one of the process; nil takes it away.
    public static func use(_ backend: TrebuchetBackend?) {
        // The one of before is freed outside of the lock.
        let before = standard.withLock { standard in
            defer { standard = backend }
            return standard
        }
        _ = before
    }

    /// Leaves all rooms at once, also those that values show: these show nobody then, and ``RoomError/left``. Returns when the server
    /// knows, or after `limit`. For apps that end: the others need not wait for the grace to be over.
    public func leaveRooms(within limit: Duration = .seconds(2)) async {
        rooms.leaveAll()
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [rooms] in
                for await count in rooms.count.stream where count == 0 { return }
            }
            group.addTask { try? await Task.sleep(for: limit) }
            await group.next()
            group.cancelAll()
        }
    }

    /// Runs `body` with a backend that its keys use.
    public func scope<Result>(_ body: () throws -> Result) rethrows -> Result {
        try Self.$scoped.withValue(self, operation: body)
    }

    /// Runs `body` with a backend that its keys use.
    public func scope<Result>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
    ) async rethrows -> Result {
        try await Self.$scoped.withValue(self, operation: body)
    }
}

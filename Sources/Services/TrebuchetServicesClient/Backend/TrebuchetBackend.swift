internal import Synchronization
public import TrebuchetClient
@_exported public import TrebuchetServicesModel

/// The services of one server at a client. The keys of `@Shared` values (`.trebuchetAuth`, …) use it.
///
///     TrebuchetBackend.setCurrent(
///         TrebuchetBackend(
///             transport: .webSocket(host: "localhost", port: 8080), credentials: FileCredentialStore(path: file)))
public final class TrebuchetBackend: Sendable {
    /// The client; all keys of this backend share its one connection.
    public let client: TrebuchetClient
    let rooms: JoinedRooms
    /// The session of the signed-in user.
    let session: ClientSession
    let collections: ClientCollections

    private static let standard = Mutex<TrebuchetBackend?>(nil)
    /// Overrides the backend of the process; for tests, and for apps with several servers.
    @TaskLocal private static var scoped: TrebuchetBackend?

    /// Creates a backend that authenticates each connection and stores its session.
    ///
    /// - Parameters:
    ///   - credentials: the storage for the session, which is resumed after a restart. Default: in memory.
    ///   - options: options of the client; their `token` is not used. Default: ``options``.
    public convenience init(
        transport: any ClientTransport, credentials: any CredentialStore = InMemoryCredentialStore(),
        options: TrebuchetClient.Options = TrebuchetBackend.options
    ) {
        self.init(transport: transport, credentials: credentials, options: options) { try await Task.sleep(for: $0) }
    }

    /// - Parameter sleep: waits for the next renewal of the session.
    package init(
        transport: any ClientTransport, credentials: any CredentialStore, options: TrebuchetClient.Options,
        sleep: @escaping @Sendable (Duration) async throws -> Void
    ) {
        let session = ClientSession(transport: transport, credentials: credentials, sleep: sleep)
        var options = options
        options.token = { try await session.token() }
        client = TrebuchetClient(transport: transport, options: options)
        client.registerServiceErrors()
        session.setClient(client)
        self.session = session
        rooms = JoinedRooms(client, session.signIns)
        collections = ClientCollections(session)
        session.report(to: collections)
    }

    /// Creates a backend with a client of the app. The first use connects it if necessary. The session is not stored, and each
    /// new connection is signed in by a call, a moment after it was made.
    public init(client: TrebuchetClient) {
        self.client = client
        client.registerServiceErrors()
        session = ClientSession()
        session.setClient(client)
        rooms = JoinedRooms(client, session.signIns)
        collections = ClientCollections(session)
        session.report(to: collections)
    }

    /// The default options of a client, except that a failed first connection is retried.
    public static var options: TrebuchetClient.Options {
        var options = TrebuchetClient.Options()
        options.reconnect.retriesFirstConnection = true
        return options
    }

    /// Connects the client if necessary, without a wait.
    package func connect() { client.connectIfNeeded() }

    /// The backend of keys that name none.
    public static var current: TrebuchetBackend? { scoped ?? standard.withLock { $0 } }

    /// Sets the backend of the process; nil removes it.
    public static func setCurrent(_ backend: TrebuchetBackend?) {
        // The previous backend is freed outside the lock.
        let before = standard.withLock { standard in
            defer { standard = backend }
            return standard
        }
        _ = before
    }

    /// Leaves all rooms at once, including those that values show; these then show no members, and ``RoomError/left``. Returns
    /// when the server has confirmed, or after `limit`. For apps that terminate: the other members see it without the grace
    /// period.
    public func leaveAllRooms(timeout limit: Duration = .seconds(2)) async {
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

    /// Runs `body` with this backend as the one of its keys.
    public func withCurrent<Result>(_ body: () throws -> Result) rethrows -> Result {
        try Self.$scoped.withValue(self, operation: body)
    }

    /// Runs `body` with this backend as the one of its keys.
    public func withCurrent<Result>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
    ) async rethrows -> Result {
        try await Self.$scoped.withValue(self, operation: body)
    }
}

extension TrebuchetClient {
    /// Registers the errors of the services, so that calls throw them as their types.
    func registerServiceErrors() {
        register(errors: AuthError.self, RoomError.self, CollectionError.self)
    }
}

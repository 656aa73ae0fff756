internal import Platform
public import SharedState
internal import Synchronization
public import TrebuchetClient
@_exported public import TrebuchetServicesModel
#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

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
        transport: some ClientTransport, credentials: any CredentialStore = InMemoryCredentialStore(),
        options: TrebuchetClient.Options = TrebuchetBackend.options
    ) {
        self.init(transport: transport, credentials: credentials, options: options) { try await Task.sleep(for: $0) }
    }

    /// - Parameter sleep: waits for the next renewal of the session.
    package init(
        transport: some ClientTransport, credentials: any CredentialStore, options: TrebuchetClient.Options,
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

extension TrebuchetBackend {
    /// Requests the rooms of a type that have members, sorted by the bytes of their names. A server refuses it unless its rules
    /// authorize the caller: `"list"` in a rules file.
    ///
    /// - Parameters:
    ///   - after: the name of the last room of the previous page; nil for the first page.
    ///   - limit: the maximum number of rooms; nil, and more than 1,000, for 1,000.
    ///
    /// Throws `RoomError.forbidden` without authorization and `RoomError.rateLimited` for too many calls; `TrebuchetError` and
    /// `TransportError` as all calls.
    public func rooms<Presence>(
        _ key: RoomKey<Presence>, after: String? = nil, limit: Int? = nil
    ) async throws -> [RoomSummary] {
        let list = try client.resolve(RemoteRoomList.self, id: ServiceNames.roomList(ofType: key.type))
        return try await list.list(after: after, limit: limit)
    }
}

extension TrebuchetBackend {
    /// Stores pending writes and read results of collections. After a restart the results are shown before there is a
    /// connection. They are marked as `isStale` until the server has sent newer ones.
    ///
    /// Call it before a collection is used. Writes are stored as ``persistPendingWrites(in:files:)`` says. Results are written
    /// within a second, and when the backend is closed. The newest result of each account, collection and query is kept; of all
    /// of those, the most recently used. A damaged file is ignored. Signing an account out removes its results; its pending
    /// writes stay.
    ///
    /// - Parameters:
    ///   - folder: a folder for this backend only, and for one server. It is created with mode 0700 when it is missing.
    ///   - limit: bytes of all results; they have at most 1,000 files. Default 64 MiB.
    ///   - log: receives lines about files that are damaged or could not be written. Default: standard error.
    public func enableOfflineStorage(
        in folder: URL, limit: Int = 64 << 20, log: (@Sendable (String) -> Void)? = nil
    ) {
        persistPendingWrites(in: folder)
        let log = log ?? { StandardStream.error.write(soon: "trebuchet: \($0)") }
        collections.storeResults { QueryResultCache(in: $0, server: client.address, limit: limit, log: log) }
    }

    /// Stores pending writes to collections in a folder, one file for each account and collection. After a restart they are
    /// sent when their author first uses the collection. Without this call they are kept in memory.
    ///
    /// Call it before a collection is used. A write is in its file before it is shown. When stored writes cannot be read, the
    /// collection has an error and accepts no other writes; each write tries to read them again.
    ///
    /// A folder belongs to one backend at a time, until it is closed or its process ends. Another backend gets
    /// ``CollectionError/pendingNotPersisted(_:)``, which names the process. Custom storages are not locked.
    ///
    /// Files that other users of the machine can read or write are refused: a user that reads them can write as this client.
    ///
    /// - Parameter files: Default: the disk, with files that only their owner can read.
    public func persistPendingWrites(in folder: URL, files: any FileStorage = DiskFileStorage.secrets) {
        collections.storeWrites(in: folder, files)
    }

    /// Closes the backend. It sends pending writes if that takes at most two seconds, stores results, closes the client and
    /// unlocks the folder. Unsent writes stay in their files.
    public func close() async {
        if client.connectionState.currentValue == .connected {
            await collections.waitUntilSent(client, within: .seconds(2))
        }
        await client.close()
        collections.close()
    }
}

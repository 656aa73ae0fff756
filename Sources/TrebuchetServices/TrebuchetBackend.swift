internal import Synchronization
public import Trebuchet

/// The services of one server, as a client uses them: what the keys of `@Shared` values (`.trebuchetAuth`, …) speak to.
///
///     TrebuchetBackend.use(TrebuchetBackend(client: client))
public final class TrebuchetBackend: Sendable {
    public let client: TrebuchetClient
    let rooms: JoinedRooms
    let collections = CollectionLinks()

    private static let standard = Mutex<TrebuchetBackend?>(nil)
    /// Goes before the one of the process; for tests, and for apps that speak to several servers.
    @TaskLocal private static var scoped: TrebuchetBackend?

    /// - Parameter client: connected by whatever is used first, if it is not yet.
    public init(client: TrebuchetClient) {
        self.client = client
        rooms = JoinedRooms(client)
    }

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

    /// Returns when the client has left all rooms and the server knows, or after `limit`. For apps that end: once they have
    /// let go of the values that show rooms, the others need not wait for the grace to be over.
    public func leaveRooms(within limit: Duration = .seconds(2)) async {
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

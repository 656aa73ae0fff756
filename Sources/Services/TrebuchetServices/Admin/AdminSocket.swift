internal import CEpoll
internal import Glibc
internal import Platform
internal import Synchronization
public import Trebuchet

/// The admin socket of a server, for `trebuchet admin`: a Unix socket that only the server's own user and root can use. It is
/// never reachable over the network.
///
///     let admin = try AdminSocket.open(
///         on: server, at: "chat.db.admin", collections: collections, rooms: rooms, accounts: accounts)
///     try await server.run()
///     admin.close()
public final class AdminSocket: Sendable {
    /// The maximum number of connections at once. Default 4; more are refused with a message.
    public static let maximumConnections = 4
    /// The maximum time to wait for an administrator, in seconds. Default 300.
    public static let idleTime = 300

    /// The path with symbolic links resolved.
    public var path: String { file.path }

    private struct State {
        var links: [ObjectIdentifier: AdminConnection] = [:]
        var isClosed = false
    }

    private let file: AdminSocketFile
    private let handler: AdminCommandHandler
    private let state = Mutex(State())

    private init(_ file: AdminSocketFile, _ handler: AdminCommandHandler) {
        self.file = file
        self.handler = handler
    }

    /// Creates the socket, which only its owner can open, and listens until ``close()``.
    ///
    /// The socket of a dead server is replaced. Throws when another server listens there, when any other file is there, and
    /// when the path is longer than 107 bytes.
    ///
    /// - Parameters:
    ///   - server: its log records each request with the administrator's user id.
    ///   - collections: like the following ones, a service to administrate; nil when the server does not host it.
    public static func open(
        on server: TrebuchetServer, at path: String, collections: CollectionHost? = nil, rooms: RoomHost? = nil,
        accounts: Accounts? = nil
    ) throws(AdminSocketError) -> AdminSocket {
        let handler = AdminCommandHandler(server: server, collections: collections, rooms: rooms, accounts: accounts)
        let socket = AdminSocket(try AdminSocketFile(listeningAt: path), handler)
        startThread { socket.acceptAll() }
        return socket
    }

    /// Returns the path of the admin socket for a data file: `chat.db.admin` beside `chat.db`.
    public static func path(forData file: String) -> String {
        guard let real = realpath(file, nil) else { return file + ".admin" }
        defer { free(real) }
        return String(cString: real) + ".admin"
    }

    /// Aborts all requests, and removes the socket.
    public func close() {
        let (links, isFirst) = state.withLock { state in
            defer { (state.links, state.isClosed) = ([:], true) }
            return (Array(state.links.values), !state.isClosed)
        }
        guard isFirst else { return }
        file.remove()
        // Wakes the thread that accepts connections; it closes the descriptor.
        shutdown(file.descriptor, Int32(SHUT_RDWR))
        for link in links { link.abort() }
    }

    private func acceptAll() {
        while true {
            let descriptor = gnu_accept4(file.descriptor, nil, nil, Int32(SOCK_CLOEXEC.rawValue))
            if descriptor >= 0 {
                admit(AdminConnection(descriptor, idleTime: Self.idleTime))
                continue
            }
            let number = errno
            if state.withLock({ $0.isClosed }) { break }
            if number == EINTR || number == ECONNABORTED { continue }
            handler.server.log("admin: accepting: \(String(cString: strerror(number)))")
            // Most likely the process has no free descriptors; it will have some later.
            usleep(200_000)
        }
        Glibc.close(file.descriptor)
    }

    private func admit(_ link: AdminConnection) {
        guard let uid = link.peerUID, AdminSocketFile.isPermitted(uid, geteuid()) else {
            handler.server.log("admin: uid \(link.peerUID.map { "\($0)" } ?? "?") was refused")
            return refuse(link, "only the server's user is authorized")
        }
        let isAdmitted = state.withLock { state in
            guard !state.isClosed, state.links.count < Self.maximumConnections else { return false }
            state.links[ObjectIdentifier(link)] = link
            return true
        }
        guard isAdmitted else {
            return refuse(link, "the admin socket has reached its limit of \(Self.maximumConnections) connections")
        }
        Task {
            await serve(link, uid)
            _ = state.withLock { $0.links.removeValue(forKey: ObjectIdentifier(link)) }
        }
    }

    private func refuse(_ link: AdminConnection, _ reason: String) {
        Task {
            try? await link.write(AdminResponse.failed(reason))
            try? await link.flush()
        }
    }

    private func serve(_ link: AdminConnection, _ uid: UInt32) async {
        do {
            while let request = try await link.next(AdminRequest.self) {
                try await handler.answer(request, by: uid) { try await link.write($0) }
                try await link.flush()
            }
        } catch {
            guard !state.withLock({ $0.isClosed }) else { return }
            handler.server.log("admin: uid \(uid): \(error)")
            try? await link.write(AdminResponse.failed("\(error)"))
            try? await link.flush()
        }
    }
}

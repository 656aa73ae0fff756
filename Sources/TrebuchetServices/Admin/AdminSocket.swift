internal import CEpoll
internal import Glibc
internal import Platform
internal import Synchronization
public import Trebuchet

/// Where administrators speak to a server: `trebuchet admin`. A Unix socket for the server's own user and root, and nothing else:
/// it is never reached over the network.
///
///     let admin = try AdminSocket.open(
///         on: server, at: "chat.db.admin", collections: collections, rooms: rooms, accounts: accounts)
///     try await server.run()
///     admin.close()
public final class AdminSocket: Sendable {
    /// Who connect at once. Default 4; more are told so.
    public static let mostConnections = 4
    /// How long an administrator may let wait, in seconds. Default 300.
    public static let idleTime = 300

    /// Where it really is.
    public var path: String { file.path }

    private struct State {
        var links: [ObjectIdentifier: AdminLink] = [:]
        var isClosed = false
    }

    private let file: AdminSocketFile
    private let desk: AdminDesk
    private let state = Mutex(State())

    private init(_ file: AdminSocketFile, _ desk: AdminDesk) {
        self.file = file
        self.desk = desk
    }

    /// Makes the socket, which its owner alone can open, and listens until ``close()``.
    ///
    /// The socket of a server that is no more is replaced. Throws when another one listens there, when there is anything else, and
    /// when the path is longer than 107 bytes.
    ///
    /// - Parameters:
    ///   - server: whose log is told what is done, and by whom.
    ///   - collections: and the others: what can be administrated; nil for what the server does not host.
    public static func open(
        on server: TrebuchetServer, at path: String, collections: CollectionHost? = nil, rooms: RoomHost? = nil,
        accounts: Accounts? = nil
    ) throws(AdminSocketError) -> AdminSocket {
        let desk = AdminDesk(server: server, collections: collections, rooms: rooms, accounts: accounts)
        let socket = AdminSocket(try AdminSocketFile(listeningAt: path), desk)
        startThread { socket.acceptAll() }
        return socket
    }

    /// Where the socket of a server is that keeps its data in a file: `chat.db.admin` beside `chat.db`.
    public static func path(besideData file: String) -> String {
        guard let real = realpath(file, nil) else { return file + ".admin" }
        defer { free(real) }
        return String(cString: real) + ".admin"
    }

    /// Ends all that is under way, and removes the socket.
    public func close() {
        let (links, isFirst) = state.withLock { state in
            defer { (state.links, state.isClosed) = ([:], true) }
            return (Array(state.links.values), !state.isClosed)
        }
        guard isFirst else { return }
        file.remove()
        // Wakes the thread that waits for others; it closes the descriptor.
        shutdown(file.descriptor, Int32(SHUT_RDWR))
        for link in links { link.cut() }
    }

    private func acceptAll() {
        while true {
            let descriptor = gnu_accept4(file.descriptor, nil, nil, Int32(SOCK_CLOEXEC.rawValue))
            if descriptor >= 0 {
                admit(AdminLink(descriptor, idleTime: Self.idleTime))
                continue
            }
            let number = errno
            if state.withLock({ $0.isClosed }) { break }
            if number == EINTR || number == ECONNABORTED { continue }
            desk.server.log("admin: accepting: \(String(cString: strerror(number)))")
            // No descriptors, most likely: they come back.
            usleep(200_000)
        }
        Glibc.close(file.descriptor)
    }

    private func admit(_ link: AdminLink) {
        guard let uid = link.peerUID, AdminSocketFile.mayTalk(uid, geteuid()) else {
            desk.server.log("admin: uid \(link.peerUID.map { "\($0)" } ?? "?") was refused")
            return refuse(link, "this is for the user of the server alone")
        }
        let isAdmitted = state.withLock { state in
            guard !state.isClosed, state.links.count < Self.mostConnections else { return false }
            state.links[ObjectIdentifier(link)] = link
            return true
        }
        guard isAdmitted else { return refuse(link, "\(Self.mostConnections) others administrate the server already") }
        Task {
            await serve(link, uid)
            _ = state.withLock { $0.links.removeValue(forKey: ObjectIdentifier(link)) }
        }
    }

    private func refuse(_ link: AdminLink, _ reason: String) {
        Task {
            try? await link.write(AdminAnswer.failed(reason))
            try? await link.flush()
        }
    }

    private func serve(_ link: AdminLink, _ uid: UInt32) async {
        do {
            while let request = try await link.next(AdminRequest.self) {
                try await desk.answer(request, by: uid) { try await link.write($0) }
                try await link.flush()
            }
        } catch {
            guard !state.withLock({ $0.isClosed }) else { return }
            desk.server.log("admin: uid \(uid): \(error)")
            try? await link.write(AdminAnswer.failed("\(error)"))
            try? await link.flush()
        }
    }
}

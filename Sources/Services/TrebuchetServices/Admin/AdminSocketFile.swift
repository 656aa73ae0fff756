internal import Glibc

/// The reason why an admin socket cannot be opened or connected to.
public struct AdminSocketError: Error, Sendable, Hashable, CustomStringConvertible {
    public let description: String

    init(_ description: String) { self.description = description }

    static func failed(_ operation: String, _ path: String? = nil) -> AdminSocketError {
        AdminSocketError("\(operation)\(path.map { " \($0)" } ?? ""): \(String(cString: strerror(errno)))")
    }
}

/// The file of a Unix socket, created so that no other user can open it at any time.
struct AdminSocketFile {
    /// The path with symbolic links resolved.
    let path: String
    let descriptor: Int32
    /// Identifies the created file, so that `remove` never removes another one.
    private let identity: Identity

    private struct Identity: Equatable {
        let device: UInt64
        let inode: UInt64
        /// The time of the last change, because an inode number is reused after a removal.
        let seconds: Int
        let nanoseconds: Int

        init(_ status: stat) {
            (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
            (seconds, nanoseconds) = (status.st_ctim.tv_sec, status.st_ctim.tv_nsec)
        }
    }

    /// The maximum length of a path in a socket address, in bytes.
    static let maximumPathLength = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

    /// Listens at a path. The socket of a dead server is replaced. A listening socket is an error, and so is any other file: a
    /// regular file, a link, or a socket of another user.
    init(listeningAt argument: String) throws(AdminSocketError) {
        let path = try Self.resolve(argument)
        // Another server that starts here must wait until this one listens; otherwise it would take this one for dead.
        let lock = path + ".lock"
        let lockDescriptor = try Self.acquire(lock)
        defer {
            unlink(lock)
            close(lockDescriptor)
        }
        try Self.clear(path)
        let descriptor = try Self.socket()
        do throws(AdminSocketError) {
            // Before `bind`, which creates the file with this mode.
            guard fchmod(descriptor, 0o600) == 0, Self.withAddress(path, { bind(descriptor, $0, $1) }) == 0 else {
                throw .failed("creating the socket", path)
            }
            var status = stat()
            guard lstat(path, &status) == 0, status.st_mode == S_IFSOCK | 0o600, status.st_uid == geteuid() else {
                throw AdminSocketError("\(path) is not the created socket; its folder is writable by other users")
            }
            identity = Identity(status)
            guard listen(descriptor, 16) == 0 else { throw .failed("listening at", path) }
        } catch {
            close(descriptor)
            throw error
        }
        self.path = path
        self.descriptor = descriptor
    }

    /// Removes the file, unless another one has replaced it.
    func remove() {
        var status = stat()
        if lstat(path, &status) == 0, Identity(status) == identity { unlink(path) }
    }

    /// Connects to the server at a path. The server must run as the same user or as root; root may connect to any server.
    static func connect(to path: String) throws(AdminSocketError) -> AdminConnection {
        try check(path)
        let descriptor = try socket()
        let link = AdminConnection(descriptor, idleTime: AdminSocket.idleTime)
        guard withAddress(path, { Glibc.connect(descriptor, $0, $1) }) == 0 else {
            switch errno {
            case ENOENT:
                throw AdminSocketError(
                    "\(path) does not exist; pass the data file of a running server or its --admin-socket")
            case ECONNREFUSED: throw AdminSocketError("no server listens at \(path); its server has ended")
            default: throw .failed("connecting to", path)
            }
        }
        guard let uid = link.peerUID, isPermitted(uid, geteuid()) || geteuid() == 0 else {
            throw AdminSocketError("the server at \(path) belongs to another user")
        }
        return link
    }

    /// Returns whether a peer may connect to a process of this user.
    static func isPermitted(_ peer: UInt32, _ own: UInt32) -> Bool { peer == own || peer == 0 }

    // MARK: Private

    private static func check(_ path: String) throws(AdminSocketError) {
        guard !path.isEmpty, !path.utf8.contains(0) else { throw AdminSocketError("'\(path)' is not a socket path") }
        guard path.utf8.count <= maximumPathLength else {
            throw AdminSocketError(
                "the socket path \(path) has \(path.utf8.count) bytes, more than \(maximumPathLength); set a shorter one "
                    + "with --admin-socket")
        }
    }

    /// Returns the path with the links in its folder resolved.
    private static func resolve(_ argument: String) throws(AdminSocketError) -> String {
        let parts = argument.split(separator: "/", omittingEmptySubsequences: false)
        let name = parts.last.map(String.init) ?? ""
        guard !["", ".", ".."].contains(name), !argument.utf8.contains(0) else {
            throw AdminSocketError("'\(argument)' is not a socket path")
        }
        let parent = parts.count > 1 ? parts.dropLast().joined(separator: "/") + "/" : "."
        guard let real = realpath(parent, nil) else { throw .failed("finding the folder of", argument) }
        defer { free(real) }
        let folder = String(cString: real)
        let path = (folder == "/" ? "" : folder) + "/" + name
        try check(path)
        return path
    }

    /// Creates and locks a file. Only this user can open it, because each process that can open a file can lock it.
    private static func acquire(_ path: String) throws(AdminSocketError) -> Int32 {
        while true {
            let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
            guard descriptor >= 0 else { throw .failed("creating", path) }
            var (own, present) = (stat(), stat())
            guard fstat(descriptor, &own) == 0, own.st_mode == S_IFREG | 0o600, own.st_uid == geteuid() else {
                close(descriptor)
                throw AdminSocketError("\(path) exists and is accessible to other users; remove it")
            }
            while flock(descriptor, LOCK_EX) != 0 {
                guard errno == EINTR else {
                    defer { close(descriptor) }
                    throw .failed("locking", path)
                }
            }
            if lstat(path, &present) == 0, present.st_ino == own.st_ino, present.st_dev == own.st_dev {
                return descriptor
            }
            // The previous holder of the lock has removed the file.
            close(descriptor)
        }
    }

    /// Removes the socket of a dead server.
    private static func clear(_ path: String) throws(AdminSocketError) {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            guard errno == ENOENT else { throw .failed("inspecting", path) }
            return
        }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw AdminSocketError(
                "\(path) exists and is not a socket; remove it, or set another path with --admin-socket")
        }
        guard status.st_uid == geteuid() else { throw AdminSocketError("the socket \(path) belongs to another user") }
        let descriptor = try socket()
        defer { close(descriptor) }
        guard withAddress(path, { Glibc.connect(descriptor, $0, $1) }) != 0 else {
            throw AdminSocketError("another server listens at \(path)")
        }
        guard errno == ECONNREFUSED else { throw .failed("checking whether a server listens at", path) }
        guard unlink(path) == 0 else { throw .failed("removing", path) }
    }

    private static func socket() throws(AdminSocketError) -> Int32 {
        let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .failed("creating a socket") }
        return descriptor
    }

    private static func withAddress<Outcome>(
        _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Outcome
    ) -> Outcome {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(maximumPathLength)) }
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
        }
    }
}

internal import Glibc

/// Why there is no socket for administrators, or nobody at it.
public struct AdminSocketError: Error, Sendable, Hashable, CustomStringConvertible {
    public let description: String

    init(_ description: String) { self.description = description }

    static func failed(_ what: String, _ path: String) -> AdminSocketError {
        AdminSocketError("\(what) \(path): \(String(cString: strerror(errno)))")
    }
}

/// The file of a Unix socket: made so that nobody but its owner ever has it.
struct AdminSocketFile {
    /// Where it really is.
    let path: String
    let descriptor: Int32
    /// What was made, so that nothing else is removed.
    private let identity: Identity

    private struct Identity: Equatable {
        let device: UInt64
        let inode: UInt64
        /// Of the last change: the number of a file that was removed is given to the next one.
        let seconds: Int
        let nanoseconds: Int

        init(_ status: stat) {
            (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
            (seconds, nanoseconds) = (status.st_ctim.tv_sec, status.st_ctim.tv_nsec)
        }
    }

    /// Bytes of a path that a socket's address has room for.
    static let longestPath = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

    /// Listens at a path. The socket of a server that is no more is replaced; that of one which listens is an error, and so is
    /// whatever else is there: a file, a link, the socket of another user.
    init(listeningAt given: String) throws(AdminSocketError) {
        let path = try Self.resolve(given)
        // Others who begin here wait, until it listens: one that does not listen yet is taken for dead.
        let lock = path + ".lock"
        let held = try Self.take(lock)
        defer {
            unlink(lock)
            close(held)
        }
        try Self.clear(path)
        let descriptor = try Self.socket()
        do throws(AdminSocketError) {
            // Before there is a file: it is made with this mode.
            guard fchmod(descriptor, 0o600) == 0, Self.withAddress(path, { bind(descriptor, $0, $1) }) == 0 else {
                throw .failed("making the socket", path)
            }
            var status = stat()
            guard lstat(path, &status) == 0, status.st_mode == S_IFSOCK | 0o600, status.st_uid == geteuid() else {
                throw AdminSocketError("\(path) is not the socket that was made there; others may write to its folder")
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

    /// Removes the file, unless there is another one by now.
    func remove() {
        var status = stat()
        if lstat(path, &status) == 0, Identity(status) == identity { unlink(path) }
    }

    /// Connects to the server at a path, which must be one of the same user, or root's; root talks to all.
    static func connect(to path: String) throws(AdminSocketError) -> AdminLink {
        try check(path)
        let descriptor = try socket()
        let link = AdminLink(descriptor, idleTime: AdminSocket.idleTime)
        guard withAddress(path, { Glibc.connect(descriptor, $0, $1) }) == 0 else {
            switch errno {
            case ENOENT:
                throw AdminSocketError(
                    "there is no \(path): name the data file of a running server, or its --admin-socket")
            case ECONNREFUSED: throw AdminSocketError("nobody listens at \(path): its server has ended")
            default: throw .failed("connecting to", path)
            }
        }
        guard let uid = link.peerUID, mayTalk(uid, geteuid()) || geteuid() == 0 else {
            throw AdminSocketError("the server at \(path) is another user's")
        }
        return link
    }

    /// Whether a peer may talk to a process of another user, or of the same.
    static func mayTalk(_ peer: UInt32, _ own: UInt32) -> Bool { peer == own || peer == 0 }

    // MARK: Inside

    private static func check(_ path: String) throws(AdminSocketError) {
        guard !path.isEmpty, !path.utf8.contains(0) else { throw AdminSocketError("'\(path)' is no path of a socket") }
        guard path.utf8.count <= longestPath else {
            throw AdminSocketError(
                "the path of a socket has at most \(longestPath) bytes, and \(path) has \(path.utf8.count); name a shorter one "
                    + "with --admin-socket")
        }
    }

    /// The path with the folder as it really is.
    private static func resolve(_ given: String) throws(AdminSocketError) -> String {
        let parts = given.split(separator: "/", omittingEmptySubsequences: false)
        let name = parts.last.map(String.init) ?? ""
        guard !["", ".", ".."].contains(name), !given.utf8.contains(0) else {
            throw AdminSocketError("'\(given)' is no path of a socket")
        }
        let parent = parts.count > 1 ? parts.dropLast().joined(separator: "/") + "/" : "."
        guard let real = realpath(parent, nil) else { throw .failed("finding the folder of", given) }
        defer { free(real) }
        let folder = String(cString: real)
        let path = (folder == "/" ? "" : folder) + "/" + name
        try check(path)
        return path
    }

    /// A file that is locked and there: one that this user alone can open, since whoever can open a file can lock it.
    private static func take(_ path: String) throws(AdminSocketError) -> Int32 {
        while true {
            let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
            guard descriptor >= 0 else { throw .failed("making", path) }
            var (own, present) = (stat(), stat())
            guard fstat(descriptor, &own) == 0, own.st_mode == S_IFREG | 0o600, own.st_uid == geteuid() else {
                close(descriptor)
                throw AdminSocketError("\(path) is there, and is not this user's alone; remove it")
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
            // Who held it has removed it.
            close(descriptor)
        }
    }

    /// Makes room for the socket.
    private static func clear(_ path: String) throws(AdminSocketError) {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            guard errno == ENOENT else { throw .failed("looking at", path) }
            return
        }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw AdminSocketError("\(path) is there and is no socket; remove it, or name another with --admin-socket")
        }
        guard status.st_uid == geteuid() else { throw AdminSocketError("\(path) is another user's socket") }
        let descriptor = try socket()
        defer { close(descriptor) }
        guard withAddress(path, { Glibc.connect(descriptor, $0, $1) }) != 0 else {
            throw AdminSocketError("another server listens at \(path)")
        }
        guard errno == ECONNREFUSED else { throw .failed("looking whether a server listens at", path) }
        guard unlink(path) == 0 else { throw .failed("removing", path) }
    }

    private static func socket() throws(AdminSocketError) -> Int32 {
        let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .failed("making a socket", "") }
        return descriptor
    }

    private static func withAddress<Outcome>(
        _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Outcome
    ) -> Outcome {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(longestPath)) }
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
        }
    }
}

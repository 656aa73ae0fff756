internal import Glibc
internal import Synchronization
internal import Trebuchet

/// The file of a store, locked for this process for the lifetime of the object.
///
/// It holds two locks of the operating system, which end with the process, however it ends. The lock on the database itself
/// holds for all its names. The lock on `FILE-lock` guards the creation, and that file names the process.
final class StoreFile: Sendable {
    /// The resolved path: two links to a file are one store.
    let path: String
    /// True if the file did not exist before.
    let isNew: Bool
    private let lock: Int32
    private let database = Mutex<DatabaseLock?>(nil)

    init(_ rawPath: String) throws(StateStoreError) {
        guard !rawPath.isEmpty, !rawPath.utf8.contains(0) else {
            throw StateStoreError(.unwritable, "'\(rawPath)' is not a file path")
        }
        let path = Self.resolved(rawPath)
        var status = stat()
        let isThere = stat(path, &status) == 0
        if !isThere, errno != ENOENT { throw Self.failure("opening \(rawPath)", errno) }
        if isThere, status.st_mode & S_IFMT != S_IFREG {
            throw StateStoreError(.notAStore, "\(rawPath) is a folder or a device; pass a file")
        }
        lock = try Self.lock(path)
        // Checked again under the lock, which prevents its creation by another process.
        isNew = stat(path, &status) != 0
        self.path = path
        if isNew { try checkNothingIsLeft() }
        try checkIsPrivate()
        if !isNew { try lockDatabase() }
        writeOwner()
    }

    deinit {
        // Not before the connections have closed: closing any descriptor of the database ends SQLite's locks on it.
        database.withLock { $0 = nil }
        // A process that is being started may briefly have a copy of the descriptor, which alone would keep the lock.
        flock(lock, LOCK_UN)
        close(lock)
    }

    /// Locks the database, which exists. Called once, by `init` or after the creation, before SQLite opens it.
    func lockDatabase() throws(StateStoreError) {
        let locked = try DatabaseLock(path)
        try Self.checkHeader(locked.descriptor, path)
        database.withLock { $0 = locked }
    }

    /// Creates an empty file that only its owner can read, from its creation on. SQLite gives its log the same mode.
    static func create(_ path: String) throws(StateStoreError) {
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw failure("creating \(path)", errno) }
        close(descriptor)
    }

    /// Refuses a path that does not lead to a database, without a lock: another process may use the file. Called before SQLite
    /// opens it, because closing a descriptor ends SQLite's locks of this process.
    static func checkIsDatabase(_ path: String) throws(StateStoreError) {
        try DatabaseLock.checkIsNotOpen(path)
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw failure("opening \(path)", errno) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw StateStoreError(.notAStore, "\(path) is a folder or a device; pass a file")
        }
        try checkHeader(descriptor, path)
    }

    private static func resolved(_ path: String) -> String {
        guard let real = realpath(path, nil) else { return path }
        defer { free(real) }
        return String(cString: real)
    }

    private static func lock(_ path: String) throws(StateStoreError) -> Int32 {
        let name = path + "-lock"
        // Does not follow links, which could lead to any file.
        let descriptor = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            let number = errno
            guard number == ENOENT else { throw failure("opening \(name)", number) }
            throw StateStoreError(.unwritable, "the folder of \(path) does not exist; create it, or pass another file")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let number = errno
            let owner = owner(descriptor)
            close(descriptor)
            guard number == EWOULDBLOCK else { throw failure("locking \(name)", number) }
            throw StateStoreError(.inUse, "\(path) is in use by process \(owner); only one process can open a store")
        }
        return descriptor
    }

    private func writeOwner() {
        let number = Array("\(getpid())".utf8)
        ftruncate(lock, 0)
        pwrite(lock, number, number.count, 0)
    }

    /// Returns the number of the process that has the lock, as that process has written it.
    private static func owner(_ descriptor: Int32) -> String {
        var text = [UInt8](repeating: 0, count: 256)
        let count = pread(descriptor, &text, text.count, 0)
        return String(decoding: text.prefix(max(0, count)), as: UTF8.self).split(separator: " ").first.map(String.init)
            ?? "?"
    }

    /// Checks the file mode before any read: the file contains the key of access tokens and the data.
    private func checkIsPrivate() throws(StateStoreError) {
        let exposed = ["", "-wal", "-shm", "-journal", "-lock"].map { path + $0 }.filter { name in
            var status = stat()
            return stat(name, &status) == 0 && status.st_mode & 0o077 != 0
        }
        guard let first = exposed.first else { return }
        throw StateStoreError(
            .insecurePermissions,
            "\(first) contains secrets and is accessible to other users of this machine; run chmod 600 "
                + exposed.map { "'" + $0.replacing("'", with: #"'\''"#) + "'" }.joined(separator: " "))
    }

    /// Refuses a log without its file: the file was moved or removed, and the data in the log must not be lost with
    /// it.
    private func checkNothingIsLeft() throws(StateStoreError) {
        for suffix in ["-wal", "-journal"] where access(path + suffix, F_OK) == 0 {
            throw StateStoreError(
                .damaged,
                "\(path) is missing, but \(path + suffix) exists; restore the file, or remove \(path + suffix) too to "
                    + "start with an empty store")
        }
    }

    /// Refuses an empty file. SQLite would treat it as a new database; here it has lost its content.
    private static func checkHeader(_ descriptor: Int32, _ path: String) throws(StateStoreError) {
        let expected = Array("SQLite format 3\u{0}".utf8)
        var found = [UInt8](repeating: 0, count: expected.count)
        let count = pread(descriptor, &found, found.count, 0)
        guard count != 0 else {
            throw StateStoreError(
                .damaged,
                "\(path) is empty: its contents are lost; restore a backup, or remove it to start with an empty store")
        }
        guard count == found.count, found == expected else {
            throw StateStoreError(
                .notAStore,
                "\(path) is not a SQLite database, or its first bytes are damaged; restore a backup, or pass "
                    + "another file")
        }
    }

    static func failure(_ what: String, _ number: Int32) -> StateStoreError {
        let code: StateStoreError.Code
        switch number {
        case EACCES, EPERM, EROFS, ENOENT, ENOTDIR, EISDIR, ENAMETOOLONG, ELOOP: code = .unwritable
        case ENOSPC, EDQUOT: code = .full
        default: code = .failed
        }
        return StateStoreError(code, "\(what): \(String(cString: strerror(number)))")
    }
}

/// The files that paths lead to while a store is open.
struct FileNames: Sendable {
    private let files: [(name: String, device: UInt64, number: UInt64)]

    /// Records the existing files.
    init(of names: [String]) {
        files = names.compactMap { name in Self.file(name).map { (name, $0.device, $0.number) } }
    }

    /// Checks that the next process would find the open files. Called for each transaction: one system call for each file.
    func check() throws(StateStoreError) {
        for file in files {
            guard let found = Self.file(file.name), (found.device, found.number) == (file.device, file.number) else {
                let open = Self.descriptor(file.device, file.number).map { "/proc/\(getpid())/fd/\($0)" }
                throw StateStoreError(
                    .failed,
                    "\(file.name) was moved or removed while it is open: put it back"
                        + (open.map { " (\($0) is the open file)" } ?? "") + " or restore a backup, then restart")
            }
        }
    }

    private static func file(_ name: String) -> (device: UInt64, number: UInt64)? {
        var status = stat()
        return stat(name, &status) == 0 ? (UInt64(status.st_dev), UInt64(status.st_ino)) : nil
    }

    /// Returns a descriptor of this process for a file.
    private static func descriptor(_ device: UInt64, _ number: UInt64) -> Int32? {
        (0..<Int32(clamping: min(sysconf(Int32(_SC_OPEN_MAX)), 65_536))).first { descriptor in
            var status = stat()
            return fstat(descriptor, &status) == 0
                && (UInt64(status.st_dev), UInt64(status.st_ino)) == (device, number)
        }
    }
}

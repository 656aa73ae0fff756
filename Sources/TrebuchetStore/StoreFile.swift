internal import Glibc
internal import Trebuchet

/// The file of a store, taken for this process as long as the object lives.
///
/// The lock is one of the operating system's on a file beside it (`flock`), so it goes with the process, however that ends.
final class StoreFile: Sendable {
    /// Where the file really is: two links to it are one store.
    let path: String
    /// Whether there was none before.
    let isNew: Bool
    private let lock: Int32

    init(_ given: String) throws(StateStoreError) {
        guard !given.isEmpty, !given.utf8.contains(0) else {
            throw StateStoreError(.unwritable, "'\(given)' is no path of a file")
        }
        let path = Self.resolved(given)
        var status = stat()
        let isThere = stat(path, &status) == 0
        if !isThere, errno != ENOENT { throw Self.failure("opening \(given)", errno) }
        if isThere, status.st_mode & S_IFMT != S_IFREG {
            throw StateStoreError(.notAStore, "\(given) is a folder or a device; name a file")
        }
        lock = try Self.lock(path)
        // Looked at again, now that nobody else makes it.
        isNew = stat(path, &status) != 0
        self.path = path
        if isNew { try checkNothingIsLeft() }
        try checkIsPrivate()
        if !isNew { try checkHeader(size: Int(status.st_size)) }
    }

    deinit {
        // A process that is being started may have a copy of the descriptor for a moment, which alone would keep the lock.
        flock(lock, LOCK_UN)
        close(lock)
    }

    /// Makes an empty file that its owner alone can read, from its first moment on; SQLite gives its log the same mode.
    static func create(_ path: String) throws(StateStoreError) {
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw failure("making \(path)", errno) }
        close(descriptor)
    }

    private static func resolved(_ path: String) -> String {
        guard let real = realpath(path, nil) else { return path }
        defer { free(real) }
        return String(cString: real)
    }

    private static func lock(_ path: String) throws(StateStoreError) -> Int32 {
        let name = path + "-lock"
        // Not through a link, which could lead to any file.
        let descriptor = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw failure("opening \(name)", errno) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let number = errno
            let owner = owner(descriptor)
            close(descriptor)
            guard number == EWOULDBLOCK else { throw failure("locking \(name)", number) }
            throw StateStoreError(.inUse, "\(path) is in use by process \(owner); a store is opened once at a time")
        }
        let number = Array("\(getpid())".utf8)
        ftruncate(descriptor, 0)
        pwrite(descriptor, number, number.count, 0)
        return descriptor
    }

    /// The number of the process that has the file, as it has written it.
    private static func owner(_ descriptor: Int32) -> String {
        var text = [UInt8](repeating: 0, count: 256)
        let count = pread(descriptor, &text, text.count, 0)
        return String(decoding: text.prefix(max(0, count)), as: UTF8.self).split(separator: " ").first.map(String.init)
            ?? "?"
    }

    /// Whoever reads the file has the key of access tokens; whoever writes it has the data. Asked before anything is read.
    private func checkIsPrivate() throws(StateStoreError) {
        let exposed = ["", "-wal", "-shm", "-journal", "-lock"].map { path + $0 }.filter { name in
            var status = stat()
            return stat(name, &status) == 0 && status.st_mode & 0o077 != 0
        }
        guard let first = exposed.first else { return }
        throw StateStoreError(
            .exposed,
            "\(first) can be read or written by others on this machine, and it holds secrets; make it yours alone: chmod 600 "
                + exposed.map { "'" + $0.replacing("'", with: #"'\''"#) + "'" }.joined(separator: " "))
    }

    /// A log without its file: the file was moved or removed, and what is in the log must not be lost with it.
    private func checkNothingIsLeft() throws(StateStoreError) {
        for suffix in ["-wal", "-journal"] where access(path + suffix, F_OK) == 0 {
            throw StateStoreError(
                .damaged,
                "\(path) is missing, but \(path + suffix) is there: put the file back beside it, or remove that one too to "
                    + "begin anew")
        }
    }

    /// SQLite takes an empty file for a new database; for us it is one that has lost its contents.
    private func checkHeader(size: Int) throws(StateStoreError) {
        guard size > 0 else {
            throw StateStoreError(
                .damaged, "\(path) is empty: its contents are lost. Restore a backup, or remove it to begin anew")
        }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.failure("opening \(path)", errno) }
        defer { close(descriptor) }
        let expected = Array("SQLite format 3\u{0}".utf8)
        var found = [UInt8](repeating: 0, count: expected.count)
        guard pread(descriptor, &found, found.count, 0) == found.count, found == expected else {
            throw StateStoreError(
                .notAStore,
                "\(path) is not a SQLite database, or its first bytes are damaged; restore a backup, or name "
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

/// What names lead to while a store is open.
struct FileNames: Sendable {
    private let files: [(name: String, device: UInt64, number: UInt64)]

    /// Those that are there.
    init(of names: [String]) {
        files = names.compactMap { name in Self.file(name).map { (name, $0.device, $0.number) } }
    }

    func check() throws(StateStoreError) {
        for file in files {
            guard let found = Self.file(file.name), (found.device, found.number) == (file.device, file.number) else {
                throw StateStoreError(
                    .failed,
                    "\(file.name) was moved or removed while it is open: what is written now, nobody finds again")
            }
        }
    }

    private static func file(_ name: String) -> (device: UInt64, number: UInt64)? {
        var status = stat()
        return stat(name, &status) == 0 ? (UInt64(status.st_dev), UInt64(status.st_ino)) : nil
    }
}

internal import Glibc
internal import Platform
internal import Synchronization
internal import Trebuchet

/// A new file of a store under a temporary name, which gets its final name when it is complete.
///
/// The file is private from its creation on. Another process that writes a file of the same name is refused. A draft that an
/// ended process has left is replaced.
final class StoreDraft {
    /// The drafts of this process.
    private static let open = Mutex<Set<String>>([])

    static func path(of target: String) -> String { target + ".partial" }

    let path: String
    let descriptor: Int32
    private let target: String
    private var isPublished = false

    /// Creates an empty file.
    ///
    /// - Throws: `unwritable` if the final name exists, `inUse` if another process writes this draft.
    init(of target: String) throws(StateStoreError) {
        try Self.checkIsMissing(target)
        self.target = target
        path = Self.path(of: target)
        descriptor = try Self.lockedFile(path)
        for suffix in ["-journal", "-wal", "-shm"] { unlink(path + suffix) }
        guard fchmod(descriptor, 0o600) == 0, ftruncate(descriptor, 0) == 0 else {
            throw StoreFile.failure("writing \(path)", errno)
        }
        _ = Self.open.withLock { $0.insert(path) }
    }

    deinit {
        Self.open.withLock { open in
            // A file that was removed by `removeAll` may be the draft of another process by now.
            if open.remove(path) != nil, !isPublished { Self.remove(path) }
        }
        close(descriptor)
    }

    /// Removes the drafts of this process, which is about to end.
    static func removeAll() {
        open.withLock { open in
            for path in open { remove(path) }
            open = []
        }
    }

    /// Removes the draft of a process that has ended. Has no effect on one that is being written.
    static func removeAbandoned(_ path: String) {
        guard let descriptor = try? lockedFile(path, creating: false) else { return }
        remove(path)
        close(descriptor)
    }

    private static func remove(_ path: String) {
        for suffix in ["", "-journal", "-wal", "-shm"] { unlink(path + suffix) }
    }

    static func checkIsMissing(_ target: String) throws(StateStoreError) {
        var status = stat()
        guard lstat(target, &status) != 0 else {
            throw StateStoreError(.unwritable, "\(target) exists and is never overwritten; choose another name")
        }
        guard errno == ENOENT else { throw StoreFile.failure("creating \(target)", errno) }
    }

    private static func lockedFile(_ path: String, creating: Bool = true) throws(StateStoreError) -> Int32 {
        let flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (creating ? O_CREAT : 0)
        let descriptor = Glibc.open(path, flags, 0o600)
        guard descriptor >= 0 else {
            let number = errno
            guard number == ENOENT else { throw StoreFile.failure("creating \(path)", number) }
            throw StateStoreError(.unwritable, "the folder of \(path) does not exist; create it, or choose another one")
        }
        var (opened, named) = (stat(), stat())
        // Another process may have published or removed the file since it was opened here.
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, fstat(descriptor, &opened) == 0, lstat(path, &named) == 0,
            opened.st_ino == named.st_ino, opened.st_dev == named.st_dev
        else {
            close(descriptor)
            throw StateStoreError(.inUse, "another process is writing \(path); wait for it, or choose another name")
        }
        return descriptor
    }

    /// Writes the data so far to the disk, then leaves the disk to other processes for as long as that took, at most 1 s. Written at
    /// once, a large file fills the queue of the disk, in which the writes of a server wait for seconds.
    func syncAndPause() throws(StateStoreError) {
        let start = MonotonicClock.now
        guard fdatasync(descriptor) == 0 else { throw StoreFile.failure("writing \(path)", errno) }
        usleep(UInt32(min((MonotonicClock.now - start) / 1_000, 1_000_000)))
    }

    /// Gives the file to the owner of its folder, if this process may: a service must be able to open what root restores.
    func giveToOwnerOfFolder() throws(StateStoreError) {
        guard geteuid() == 0 else { return }
        var folder = stat()
        let name = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        guard stat(name, &folder) == 0, fchown(descriptor, folder.st_uid, folder.st_gid) == 0 else {
            throw StoreFile.failure("changing the owner of \(path)", errno)
        }
        // The server opens the lock too.
        _ = lchown(target + "-lock", folder.st_uid, folder.st_gid)
    }

    /// Syncs the complete file and gives it its final name, which must not exist.
    func publish() throws(StateStoreError) {
        guard fsync(descriptor) == 0 else { throw StoreFile.failure("writing \(path)", errno) }
        // Unlike `rename`, `link` never replaces a file.
        if link(path, target) == 0 {
            unlink(path)
        } else {
            // Some file systems have no links.
            guard [EPERM, EOPNOTSUPP, ENOSYS, EMLINK].contains(errno) else {
                let number = errno
                try Self.checkIsMissing(target)
                throw StoreFile.failure("creating \(target)", number)
            }
            try Self.checkIsMissing(target)
            guard rename(path, target) == 0 else { throw StoreFile.failure("creating \(target)", errno) }
        }
        isPublished = true
        try StoreSchema.syncFolder(of: target)
    }
}

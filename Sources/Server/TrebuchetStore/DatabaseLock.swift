internal import Glibc
internal import Synchronization
internal import Trebuchet

/// An exclusive lock on a database file itself, whatever name leads to it.
///
/// It is an open file description lock (`F_OFD_SETLK`) on a byte that SQLite never locks. It belongs to the descriptor, so
/// SQLite's own locks, which belong to the process, neither conflict with it nor end it.
final class DatabaseLock: Sendable {
    /// `F_OFD_SETLK` of Linux, which the C library's module does not export.
    private static let setLock: Int32 = 37
    /// Far behind the bytes that SQLite locks, from 1 GiB on, and behind the largest file.
    private static let offset: off_t = 0x5452_4542_0000_0000

    private struct Identity: Hashable {
        let device: UInt64
        let number: UInt64
    }

    /// The databases that this process has open. One of them must not be opened again, not even to fail: closing a
    /// descriptor ends all locks of SQLite in this process on that file, and other programs would remove its log.
    private static let own = Mutex<Set<Identity>>([])

    /// Open for reading and writing.
    let descriptor: Int32
    private let identity: Identity

    init(_ path: String) throws(StateStoreError) {
        (descriptor, identity) = try Self.own.withLock { own throws(StateStoreError) in try Self.open(path, &own) }
    }

    /// Refuses a database that this process has open.
    static func checkIsNotOpen(_ path: String) throws(StateStoreError) {
        var status = stat()
        guard stat(path, &status) == 0, own.withLock({ $0.contains(identity(status)) }) else { return }
        throw inUse(path, "this process (\(getpid()))")
    }

    private static func open(
        _ path: String, _ own: inout Set<Identity>
    ) throws(StateStoreError) -> (Int32, Identity) {
        var status = stat()
        guard stat(path, &status) == 0 else { throw StoreFile.failure("opening \(path)", errno) }
        guard !own.contains(identity(status)) else { throw inUse(path, "this process (\(getpid()))") }
        let descriptor = Glibc.open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { throw StoreFile.failure("opening \(path)", errno) }
        do throws(StateStoreError) {
            guard fstat(descriptor, &status) == 0 else { throw StoreFile.failure("opening \(path)", errno) }
            guard set(F_WRLCK, descriptor) else {
                let number = errno
                guard number == EAGAIN || number == EACCES else { throw StoreFile.failure("locking \(path)", number) }
                throw inUse(path, "another process")
            }
            guard status.st_nlink == 1 else {
                throw StateStoreError(
                    .unwritable,
                    "\(path) has \(status.st_nlink) names (hard links), but its log has one: writes would be lost under the "
                        + "others; remove them")
            }
        } catch {
            close(descriptor)
            throw error
        }
        own.insert(identity(status))
        return (descriptor, identity(status))
    }

    private static func inUse(_ path: String, _ owner: String) -> StateStoreError {
        StateStoreError(
            .inUse,
            "\(path) is in use by \(owner), under another name or without its lock file; only one process can open a store"
        )
    }

    private static func identity(_ status: stat) -> Identity {
        Identity(device: UInt64(status.st_dev), number: UInt64(status.st_ino))
    }

    private static func set(_ type: Int32, _ descriptor: Int32) -> Bool {
        var range = flock()
        range.l_type = Int16(type)
        range.l_whence = Int16(SEEK_SET)
        range.l_start = offset
        range.l_len = 1
        return fcntl(descriptor, setLock, &range) == 0
    }

    deinit {
        // A process that is being started may briefly have a copy of the descriptor, which alone would keep the lock.
        _ = Self.set(F_UNLCK, descriptor)
        Self.own.withLock { own in
            close(descriptor)
            own.remove(identity)
        }
    }
}

internal import Synchronization

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Glibc
#endif

/// An exclusive lock of a folder, against other processes and other owners in this process.
///
/// It is an operating system lock on a file in the folder (`flock`), so it ends with the process, however that ends.
package final class FolderLock: Sendable {
    /// The reason why a folder cannot be locked.
    package struct Failure: Error, Sendable, Equatable, CustomStringConvertible {
        package let folder: String
        package let reason: String

        package var description: String { "\(folder) \(reason)" }
    }

    private static let name = ".lock"

    package let folder: String
    /// Nil after the release.
    private let descriptor: Mutex<Int32?>

    /// Locks the folder. Creates it (mode 0700) if it is missing.
    package init(_ folder: String) throws(Failure) {
        let path = "\(folder)/\(Self.name)"
        do throws(PrivateFile.Failure) {
            try PrivateFile.makeFolders(of: path)
        } catch {
            throw Failure(folder: folder, reason: error.reason)
        }
        // Does not follow links, which could lead to any file.
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw Self.failure(folder, "cannot be locked", errno) }
        guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
            let number = errno
            let owner = Self.owner(file)
            close(file)
            guard number == EWOULDBLOCK else { throw Self.failure(folder, "cannot be locked", number) }
            throw Failure(
                folder: folder, reason: "is in use by process \(owner); use a separate folder for each process")
        }
        let owner = Array("\(getpid())".utf8)
        ftruncate(file, 0)
        pwrite(file, owner, owner.count, 0)
        self.folder = folder
        descriptor = Mutex(file)
    }

    deinit { release() }

    package var isLocked: Bool { descriptor.withLock { $0 != nil } }

    /// Releases the folder for other owners.
    package func release() {
        guard let file = descriptor.withLock({ $0.take() }) else { return }
        // A process that is being started may briefly have a copy of the descriptor, which alone would keep the lock.
        flock(file, LOCK_UN)
        close(file)
    }

    private static func owner(_ file: Int32) -> String {
        var text = [UInt8](repeating: 0, count: 16)
        let count = pread(file, &text, text.count, 0)
        return count > 0 ? String(decoding: text.prefix(count), as: UTF8.self) : "?"
    }

    private static func failure(_ folder: String, _ what: String, _ number: Int32) -> Failure {
        Failure(folder: folder, reason: "\(what): \(String(cString: strerror(number)))")
    }
}

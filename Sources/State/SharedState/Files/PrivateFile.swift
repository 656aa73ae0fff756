#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Glibc
#endif

/// Files that only their owner can read and write, from their creation on.
package enum PrivateFile {
    /// A failed operation, for example `cannot be written: Permission denied`.
    package struct Failure: Error, Sendable, Equatable, CustomStringConvertible {
        package let path: String
        package let reason: String

        package var description: String { "\(path) \(reason)" }

        init(_ path: String, _ reason: String) {
            self.path = path
            self.reason = reason
        }

        init(_ path: String, _ what: String, _ number: Int32) {
            self.init(path, "\(what): \(String(cString: strerror(number)))")
        }
    }

    /// Returns the content; nil when there is no file. Refuses a file of another user, and one that others can read or
    /// write: its content is no longer secret, or may have been altered.
    package static func contents(_ path: String) throws(Failure) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            guard errno == ENOENT else { throw Failure(path, "cannot be read", errno) }
            return nil
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw Failure(path, "cannot be read", errno) }
        guard status.st_uid == geteuid() else { throw Failure(path, "is owned by another user; remove it") }
        guard status.st_mode & 0o077 == 0 else {
            throw Failure(
                path,
                "can be read or written by other users; restrict it: chmod 600 '\(path.replacing("'", with: #"'\''"#))'"
            )
        }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = chunk.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Failure(path, "cannot be read", errno) }
            if count == 0 { return bytes }
            bytes += chunk[..<count]
        }
    }

    /// Replaces the file atomically, and creates its missing folders (mode 0700). The file has mode 0600 whatever it
    /// had before. A link to a file stays a link.
    package static func replace(_ path: String, with bytes: UnsafeRawBufferPointer) throws(Failure) {
        var folders: [String] = []
        let resolved = SymlinkResolution.resolve(path) { folder, name, isLast in
            if !isLast { folders.append(folder == "/" ? "/\(name)" : "\(folder)/\(name)") }
        }
        guard let target = resolved else { throw Failure(path, "cannot be written", ELOOP) }
        // Also a folder that the path leaves again, as in `missing/../file`: without it the system finds no such file.
        for folder in folders { try makeFolder(folder, for: path) }
        // Created exclusively by this call, never accessible to others, even briefly, and not inherited by programs
        // that are started meanwhile.
        let template = Array(temporaryPath(nextTo: target).utf8CString)
        let descriptor = open(template, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw Failure(path, "cannot be written", errno) }
        defer { close(descriptor) }
        var remaining = bytes[...]
        while !remaining.isEmpty {
            let count = write(descriptor, UnsafeRawBufferPointer(rebasing: remaining).baseAddress, remaining.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw removeTemporaryFile(template, path) }
            remaining = remaining.dropFirst(count)
        }
        guard fsync(descriptor) == 0, rename(template, target) == 0 else { throw removeTemporaryFile(template, path) }
    }

    private static func removeTemporaryFile(_ template: [CChar], _ path: String) -> Failure {
        let number = errno
        unlink(template)
        return Failure(path, "cannot be written", number)
    }

    package static func makeFolders(of path: String) throws(Failure) {
        var parts = path.split(separator: "/", omittingEmptySubsequences: false).dropLast().map(String.init)
        var missing: [String] = []
        while parts.count > 1 || parts.first?.isEmpty == false {
            let folder = parts.joined(separator: "/")
            if access(folder, F_OK) == 0 { break }
            missing.append(folder)
            parts.removeLast()
        }
        for folder in missing.reversed() { try makeFolder(folder, for: path) }
    }

    private static func makeFolder(_ folder: String, for path: String) throws(Failure) {
        guard access(folder, F_OK) != 0, mkdir(folder, 0o700) != 0, errno != EEXIST else { return }
        throw Failure(path, "cannot be written", errno)
    }

    /// Returns a path in the same folder. Its name has the beginning of the file's name and, if that is long, at most
    /// its length, so that the file system accepts it.
    private static func temporaryPath(nextTo path: String) -> String {
        let nameStart = path.lastIndex(of: "/").map { path.index(after: $0) } ?? path.startIndex
        let number = ".\(UInt64.random(in: .min ... .max))"
        var name = path[nameStart...]
        let limit = max(name.utf8.count, 64) - number.utf8.count
        while name.utf8.count > limit { name.removeLast() }
        return path[..<nameStart] + name + number
    }
}

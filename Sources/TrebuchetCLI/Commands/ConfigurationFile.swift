import Commands
import Glibc

/// A file that an option of `serve` names, such as a list of providers or a token.
enum ConfigurationFile {
    /// Reads a whole file. Never blocks: anything but a regular file is refused, as for keys and certificates.
    ///
    /// - Parameters:
    ///   - option: the option that names the file, for errors.
    ///   - maximum: the maximum size in bytes.
    ///   - isSecret: whether the file must not be writable by other users.
    static func read(
        _ path: String, of option: String, maximum: Int, isSecret: Bool = false
    ) throws(UsageError) -> [UInt8] {
        func problem(_ reason: String) -> UsageError { UsageError("\(option) \(path): \(reason)") }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw problem(String(cString: strerror(errno))) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw problem("not a regular file")
        }
        guard !isSecret || status.st_mode & 0o022 == 0 else {
            throw problem("the file is writable by other users; run chmod go-w")
        }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw problem(String(cString: strerror(errno))) }
            guard count > 0 else { return bytes }
            bytes += buffer[..<count]
            guard bytes.count <= maximum else { throw problem("the file is larger than \(maximum) bytes") }
        }
    }
}

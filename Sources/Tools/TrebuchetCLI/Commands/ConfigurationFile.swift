import Commands
import Foundation
import Glibc
import Platform

/// A file that an option of `serve` names, such as a list of providers or a token.
enum ConfigurationFile {
    /// Reads a whole file. Never blocks: anything but a regular file is refused, as for keys and certificates.
    ///
    /// - Parameters:
    ///   - option: the option that names the file, for errors; nil for an operand.
    ///   - maximum: the maximum size in bytes.
    ///   - isSecret: whether the file must not be writable by other users.
    static func read(
        _ path: String, of option: String?, maximum: Int, isSecret: Bool = false
    ) throws(UsageError) -> [UInt8] {
        func problem(_ reason: String) -> UsageError {
            UsageError("\(option.map { $0 + " " } ?? "")\(path): \(reason)")
        }
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

    /// Returns the first line of the file that an option names, or the value of an environment variable; nil without both.
    static func secret(
        _ option: String, or variable: String, _ arguments: ParsedArguments
    ) throws(UsageError) -> String? {
        guard let path = arguments.string(option) else {
            let value = ProcessInfo.processInfo.environment[variable]
            return value?.isEmpty == false ? value : nil
        }
        let bytes = try read(path, of: option, maximum: 65_536, isSecret: true)
        let line = String(decoding: bytes.withoutByteOrderMark.prefix { $0 != 10 && $0 != 13 }, as: UTF8.self)
            .trimmingCharacters(in: .whitespaces)
        guard !line.isEmpty else { throw UsageError("\(option) \(path): the first line is empty") }
        return line
    }
}

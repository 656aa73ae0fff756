internal import Glibc

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// Keeps the credential in a file that its owner alone can read (mode 0600), in a folder of mode 0700 that is made when it
/// is missing. The file is replaced as a whole.
///
/// Several processes may share it: each reads it again before it renews the session.
public final class FileCredentialStore: CredentialStore {
    /// What could not be done with the file.
    public struct Failure: Error, Sendable, Equatable, CustomStringConvertible {
        public let path: String
        public let reason: String

        public var description: String { "the credential file \(path) \(reason)" }
    }

    /// Larger than any credential.
    private static let largest = 64 << 10

    public let path: String

    public init(path: String) { self.path = path }

    public func load() throws(Failure) -> Credential? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            guard errno == ENOENT else { throw failure("cannot be read", errno) }
            return nil
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure("cannot be read", errno) }
        guard status.st_uid == geteuid(), status.st_mode & 0o077 == 0 else {
            throw Failure(path: path, reason: "can be read by others; remove it, or make it yours alone: chmod 600")
        }
        var bytes = [UInt8](repeating: 0, count: Self.largest)
        var count = 0
        while count < bytes.count {
            let more = bytes[count...].withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
            if more < 0, errno == EINTR { continue }
            guard more >= 0 else { throw failure("cannot be read", errno) }
            if more == 0 { break }
            count += more
        }
        guard let credential = try? JSONDecoder().decode(Credential.self, from: Data(bytes[..<count])) else {
            throw Failure(path: path, reason: "is damaged; remove it and sign in again")
        }
        return credential
    }

    public func save(_ credential: Credential?) throws(Failure) {
        guard let credential else {
            guard unlink(path) == 0 || errno == ENOENT else { throw failure("cannot be removed", errno) }
            return
        }
        try makeFolders()
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        guard let bytes = try? Array(encoder.encode(credential)) else {
            throw Failure(path: path, reason: "cannot be written: the credential does not encode")
        }
        // Of this process and call alone, and never open to others, not even for a moment.
        var template = Array("\(path).XXXXXX".utf8CString)
        let descriptor = mkstemp(&template)
        guard descriptor >= 0 else { throw failure("cannot be written", errno) }
        defer { close(descriptor) }
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw abandon(template) }
            written += count
        }
        guard fchmod(descriptor, 0o600) == 0, fsync(descriptor) == 0, rename(template, path) == 0 else {
            throw abandon(template)
        }
    }

    private func makeFolders() throws(Failure) {
        var parts = path.split(separator: "/", omittingEmptySubsequences: false).dropLast().map(String.init)
        var missing: [String] = []
        while parts.count > 1 || parts.first?.isEmpty == false {
            let folder = parts.joined(separator: "/")
            if access(folder, F_OK) == 0 { break }
            missing.append(folder)
            parts.removeLast()
        }
        for folder in missing.reversed() {
            guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { throw failure("cannot be written", errno) }
        }
    }

    private func abandon(_ template: [CChar]) -> Failure {
        let number = errno
        unlink(template)
        return failure("cannot be written", number)
    }

    private func failure(_ what: String, _ number: Int32) -> Failure {
        Failure(path: path, reason: "\(what): \(String(cString: strerror(number)))")
    }
}

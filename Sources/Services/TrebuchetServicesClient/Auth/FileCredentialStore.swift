internal import SharedState

#if canImport(Glibc)
    internal import Glibc
#endif
#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// Keeps the credential in a file that only its owner can read (mode 0600), in a folder of mode 0700 that is created when it is
/// missing. The file is replaced atomically.
///
/// Several processes may share the file: each reads it again before it renews the session.
public final class FileCredentialStore: CredentialStore {
    /// An error of a file operation.
    public struct Failure: Error, Sendable, Equatable, CustomStringConvertible {
        /// The path of the file.
        public let path: String
        /// The problem, as it follows the path in a message: `cannot be read: …`.
        public let reason: String

        public var description: String { "the credential file \(path) \(reason)" }
    }

    /// The path of the file.
    public let path: String

    /// Creates a store; it does not access the file yet.
    ///
    /// - Parameter path: the path of the file. Missing folders are created by the first save.
    public init(path: String) { self.path = path }

    /// Reads the file. Returns nil when there is none; throws when it cannot be read or does not contain a credential.
    public func load() throws(Failure) -> Credential? {
        guard let bytes = try named({ () throws(PrivateFile.Failure) in try PrivateFile.contents(path) }) else {
            return nil
        }
        guard let credential = try? JSONDecoder().decode(Credential.self, from: Data(bytes)) else {
            throw Failure(path: path, reason: "is damaged; remove it and sign in again")
        }
        return credential
    }

    /// Replaces the file atomically. Nil removes it; a missing file is no error then.
    public func save(_ credential: Credential?) throws(Failure) {
        guard let credential else {
            guard unlink(path) == 0 || errno == ENOENT else {
                throw Failure(path: path, reason: "cannot be removed: \(String(cString: strerror(errno)))")
            }
            return
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        guard let bytes = try? Array(encoder.encode(credential)) else {
            throw Failure(path: path, reason: "cannot be written: encoding the credential failed")
        }
        let outcome = bytes.withUnsafeBytes { bytes in
            Result { () throws(PrivateFile.Failure) in try PrivateFile.replace(path, with: bytes) }
        }
        try named { () throws(PrivateFile.Failure) in try outcome.get() }
    }

    private func named<Value>(_ body: () throws(PrivateFile.Failure) -> Value) throws(Failure) -> Value {
        do throws(PrivateFile.Failure) { return try body() } catch { throw Failure(path: path, reason: error.reason) }
    }
}

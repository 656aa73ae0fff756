internal import SharedState

#if canImport(Glibc)
    internal import Glibc
#endif
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
        /// The file.
        public let path: String
        /// What is wrong with it, to be read behind its path: `cannot be read: …`.
        public let reason: String

        public var description: String { "the credential file \(path) \(reason)" }
    }

    /// Where the file is, or will be.
    public let path: String

    /// Touches no file yet.
    ///
    /// - Parameter path: of the file. Folders that are missing are made when something is saved.
    public init(path: String) { self.path = path }

    /// Reads the file. Nil when there is none; throws when it cannot be read, and when it holds something else.
    public func load() throws(Failure) -> Credential? {
        guard let bytes = try named({ () throws(PrivateFile.Failure) in try PrivateFile.contents(path) }) else {
            return nil
        }
        guard let credential = try? JSONDecoder().decode(Credential.self, from: Data(bytes)) else {
            throw Failure(path: path, reason: "is damaged; remove it and sign in again")
        }
        return credential
    }

    /// Replaces the file as a whole; nil removes it, and it is no error when there is none.
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
            throw Failure(path: path, reason: "cannot be written: the credential does not encode")
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

internal import Synchronization

/// The stored part of a session, with which a client resumes it after a restart. It authenticates the user, so it must be kept
/// secret.
public struct Credential: Codable, Sendable, Hashable {
    /// The token that renews the session once; the server sends a new one with the response.
    public var refreshToken: String
    /// The user to show while the server cannot be reached.
    public var user: User

    /// - Parameters:
    ///   - refreshToken: the newest token of the session; a used one ends the session.
    ///   - user: the user to show until the server has responded.
    public init(refreshToken: String, user: User) {
        self.refreshToken = refreshToken
        self.user = user
    }
}

/// A storage for the credential of a client: one for each server and operating-system user.
///
/// Its methods are called rarely and from any thread; they may block for as long as access to a small file takes.
public protocol CredentialStore: Sendable {
    /// Returns the credential, or nil when there is none.
    func load() throws -> Credential?
    /// Saves the credential; nil deletes it.
    func save(_ credential: Credential?) throws
}

/// Keeps the credential in memory.
public final class InMemoryCredentialStore: CredentialStore {
    private let credential: Mutex<Credential?>

    /// - Parameter credential: the initial credential, for tests. Default: none, so no user is signed in.
    public init(_ credential: Credential? = nil) { self.credential = Mutex(credential) }

    /// Returns the last saved credential, or nil.
    public func load() -> Credential? { credential.withLock { $0 } }
    /// Replaces the credential; nil deletes it.
    public func save(_ credential: Credential?) { self.credential.withLock { $0 = credential } }
}

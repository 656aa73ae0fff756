internal import Synchronization

/// What a client keeps of a session, so that it goes on after a restart. Who has it can act as the user.
public struct Credential: Codable, Sendable, Hashable {
    /// Renews the session once; the server gives another one with it.
    public var refreshToken: String
    /// Shown while the server cannot be asked.
    public var user: User

    /// - Parameters:
    ///   - refreshToken: the newest of the session; one that was used before ends it.
    ///   - user: shown until the server has answered.
    public init(refreshToken: String, user: User) {
        self.refreshToken = refreshToken
        self.user = user
    }
}

/// Where a client keeps its credential: one for each server and user of the machine.
///
/// Called from any thread, not often, and may block for as long as a small file takes.
public protocol CredentialStore: Sendable {
    /// Nil when there is none.
    func load() throws -> Credential?
    /// Nil deletes it.
    func save(_ credential: Credential?) throws
}

/// Keeps the credential as long as the process lives.
public final class InMemoryCredentialStore: CredentialStore {
    private let credential: Mutex<Credential?>

    /// - Parameter credential: what is there from the beginning, for tests. Default: nothing, so nobody is signed in.
    public init(_ credential: Credential? = nil) { self.credential = Mutex(credential) }

    /// What was saved last; nil for nothing.
    public func load() -> Credential? { credential.withLock { $0 } }
    /// Keeps it until another is saved; nil forgets it.
    public func save(_ credential: Credential?) { self.credential.withLock { $0 = credential } }
}

internal import Synchronization

/// What a client keeps of a session, so that it goes on after a restart. Who has it can act as the user.
public struct Credential: Codable, Sendable, Hashable {
    public var refreshToken: String
    /// Shown while the server cannot be asked.
    public var user: User

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

    public init(_ credential: Credential? = nil) { self.credential = Mutex(credential) }

    public func load() -> Credential? { credential.withLock { $0 } }
    public func save(_ credential: Credential?) { self.credential.withLock { $0 = credential } }
}

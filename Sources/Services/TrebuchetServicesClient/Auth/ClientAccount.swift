internal import Platform
internal import TrebuchetClient

/// The owner of pending writes and cached results at a client.
enum ClientAccount: Hashable, Sendable {
    /// A signed-in user, by id.
    case user(String)
    /// No user is signed in.
    case signedOut
    /// The user of a client that the app has created; the backend does not know that user.
    case client

    /// The principal's id for the server to compare with the connection's principal; nil for no comparison.
    var name: String? {
        switch self {
        case .user(let id): id
        case .signedOut: ""
        case .client: nil
        }
    }

    /// The subfolder for the account's files; nil for accounts without a name, whose files are in the parent folder.
    var folder: String? {
        guard case .user(let id) = self else { return nil }
        // The server chooses the id: it might be no valid file name, or a path to another folder.
        let digest = SHA256.digest(of: Array(id.utf8)).prefix(12)
        return "user-" + digest.map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
    }
}

/// An object that stores writes and results per account and is notified of account changes.
protocol AccountObserver: AnyObject, Sendable {
    /// Another user is signed in, or none.
    func accountChanged(from before: ClientAccount)
    /// Returns when no write of the current account waits to be sent, or after `limit`.
    func waitUntilSent(_ client: TrebuchetClient, within limit: Duration) async
}

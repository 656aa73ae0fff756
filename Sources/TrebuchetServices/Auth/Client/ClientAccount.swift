internal import Trebuchet

/// Whose writes wait at a client, and who has read what is kept there.
enum ClientAccount: Hashable, Sendable {
    /// Somebody who is signed in, by the user's id.
    case user(String)
    /// Nobody is signed in.
    case nobody
    /// Whoever the connections of an app's own client are; the backend does not know who that is.
    case client

    /// What the server compares the connection's principal with; nil for no comparison.
    var name: String? {
        switch self {
        case .user(let id): id
        case .nobody: ""
        case .client: nil
        }
    }

    /// The folder of its files, in that of all; nil for those who are not known by a name, whose files are in that one itself.
    var folder: String? {
        guard case .user(let id) = self else { return nil }
        // An id is the server's: it could be no name of a file, or the way to another folder.
        let digest = Digest.sha256(Array(id.utf8)).prefix(12)
        return "user-" + digest.map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
    }
}

/// What keeps writes and results of whoever is signed in, and is to know who that is.
protocol AccountFollower: AnyObject, Sendable {
    /// Somebody else is signed in, or nobody.
    func accountChanged(from before: ClientAccount)
    /// Returns when nothing of who is signed in waits to be sent, or after `limit`.
    func waitUntilSent(_ client: TrebuchetClient, within limit: Duration) async
}

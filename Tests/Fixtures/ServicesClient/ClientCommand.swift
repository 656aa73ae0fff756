package import TrebuchetServices

/// A command of a test for a client: one JSON line on its input, answered by one with a `ClientReply`.
package enum ClientCommand: Codable, Sendable {
    case signInAsGuest
    case sendCode(email: String)
    case verify(email: String, code: String)
    /// Completes when the room shows this client, and its topic is connected.
    case join(OfficePresence)
    case show(OfficePresence)
    /// Completes when these are the other members of the room.
    case awaitPeers([OfficePresence])
    case publish(String)
    /// Completes when these are all received events.
    case awaitEvents([String])
    case create(Note)
    /// Writes at random, four writes at a time; completes when all are answered.
    case edit(name: String, seed: UInt64, rounds: Int)
    /// Returns the notes once they are loaded.
    case readNotes
    /// Completes when these are the notes and no write is pending.
    case awaitNotes([Note])
}

/// The outcome of a command.
package struct ClientReply: Codable, Sendable {
    package var error: String?
    package var user: User?
    package var edits: NoteEdits?
    /// The notes by their ids.
    package var notes: [Note]?
}

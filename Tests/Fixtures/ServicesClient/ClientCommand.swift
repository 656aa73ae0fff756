package import TrebuchetServices

/// What a test has a client do: one JSON line on its input, answered by one with a `ClientReply`.
package enum ClientCommand: Codable, Sendable {
    case signInAsGuest
    case sendCode(email: String)
    case verify(email: String, code: String)
    /// Done when the room shows this client, and its topic is connected.
    case join(Visitor)
    case show(Visitor)
    /// Done when these are the others in the room.
    case awaitPeers([Visitor])
    case publish(String)
    /// Done when these are all events that came.
    case awaitEvents([String])
    case create(Note)
    /// Writes at random, four writes at a time; done when all are answered.
    case edit(name: String, seed: UInt64, rounds: Int)
    /// The notes, as soon as they are there.
    case readNotes
    /// Done when these are the notes and no write is on its way.
    case awaitNotes([Note])
}

/// What came of a command.
package struct ClientReply: Codable, Sendable {
    package var error: String?
    package var user: User?
    package var edits: NoteEdits?
    /// By their ids.
    package var notes: [Note]?
}

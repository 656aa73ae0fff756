/// A document of both collections.
struct Note: Codable, Identifiable, Hashable, Sendable {
    static let notes = "notes"
    static let diary = "diary"
    /// The id of the note that all guests write to.
    static let shared = "shared"

    var id: String
    var owner: String
    var text = ""
    /// How often its owner has changed it.
    var count = 0
    var tags: [String] = []
}

/// The presence of a guest in a room.
struct ConsistencyPresence: Codable, Hashable, Sendable {
    var name: String
    var room: String
    var mood = ""
}

/// An event: who published it, where, and as which.
struct Label: Hashable, Sendable, CustomStringConvertible {
    let name: String
    let room: String
    let number: Int

    init(_ name: String, _ room: String, _ number: Int) { (self.name, self.room, self.number) = (name, room, number) }

    init?(_ text: String) {
        let parts = text.split(separator: ".")
        guard parts.count == 3, let number = Int(parts[2]) else { return nil }
        self.init(String(parts[0]), String(parts[1]), number)
    }

    var description: String { "\(name).\(room).\(number)" }
}

/// The actions, responses and observed values of a guest: one line of JSON, from guests in all languages.
struct ServicesClientReport: Codable, Sendable {
    struct Room: Codable, Sendable {
        /// The others, as they are shown now.
        var peers: [ConsistencyPresence] = []
        /// Names and rooms of all that were ever shown: `ada@1`.
        var seen: Set<String> = []
        /// All events that were shown, in their order.
        var events: [String] = []
        /// Own events, by how their publishing ended.
        var acknowledged: [String] = []
        var unknown: [String] = []
        var refused: [String] = []
    }

    var name: String
    var rooms: [String: Room] = [:]
    /// As they are shown now.
    var notes: [Note] = []
    var diary: [Note] = []
    /// The writers of all diary pages that were observed.
    var writers: Set<String> = []
    /// Whether unsent writes exist.
    var isWaiting = false
    /// The expected values if each own write was applied once: notes, pages, and tags of the shared note.
    var ownNotes: [Note] = []
    var ownPages: [Note] = []
    var tags: [String] = []
    /// The last own text of the shared note.
    var text: String?
    var writes = 0
    var acknowledged = 0
    var failures: [String] = []
    /// The attempts to read private data, and the successful ones.
    var attempts = 0
    var spied: [String] = []

    init(name: String) { self.name = name }
}

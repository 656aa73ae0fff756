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

/// What a guest shows the others in a room.
struct ConsistencyVisitor: Codable, Hashable, Sendable {
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

/// What a guest has done, was told, and is shown: one line of JSON, from guests of all languages.
struct ServicesClientReport: Codable, Sendable {
    struct Room: Codable, Sendable {
        /// The others, as they are shown now.
        var peers: [ConsistencyVisitor] = []
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
    /// Whose pages of a diary were ever shown.
    var writers: Set<String> = []
    /// Whether writes wait.
    var isWaiting = false
    /// What is there if each own write was done once: notes, pages, and tags of the shared note.
    var keptNotes: [Note] = []
    var keptPages: [Note] = []
    var tags: [String] = []
    /// The last own text of the shared note.
    var text: String?
    var writes = 0
    var acknowledged = 0
    var failures: [String] = []
    /// What was tried to get at, and what of it was got.
    var attempts = 0
    var spied: [String] = []

    init(name: String) { self.name = name }
}

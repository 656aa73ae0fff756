internal import Platform
internal import SharedState
internal import TrebuchetServices

/// The writes of a client, and the expected documents if each write was executed once.
package struct NoteEdits: Codable, Sendable {
    /// The note that all clients change.
    package static let shared = Note(id: "shared")

    /// The notes that this client has created and not deleted, by their ids.
    package private(set) var notes: [Note] = []
    /// The expected tags of the shared note.
    package private(set) var tags: [String] = []
    /// The last text that this client has set in the shared note.
    package private(set) var text: String?
    package private(set) var writes = 0
    package private(set) var acknowledged = 0
    package private(set) var failures: [String] = []

    /// A name for each write.
    private let name: String

    init(name: String) { self.name = name }

    @MainActor
    mutating func run(_ rounds: Int, on shown: Shared<SyncedCollection<Note>>, seed: UInt64) async {
        var random = RandomSource(seed: seed)
        for _ in 0..<rounds {
            var calls: [OperationCall<Void>] = []
            for _ in 0..<4 { calls.append(write(to: shown, using: &random)) }
            for call in calls {
                do {
                    try await call.value
                    acknowledged += 1
                } catch {
                    failures.append("\(error)")
                }
            }
        }
        notes.sort { $0.id < $1.id }
    }

    /// Makes one write that detects a repeated execution: a deleted note that is created again, or a removed tag that is added again.
    @MainActor
    private mutating func write(
        to shown: Shared<SyncedCollection<Note>>, using random: inout RandomSource
    ) -> OperationCall<Void> {
        writes += 1
        let label = "\(name).\(writes)"
        switch Int.random(in: 0..<8, using: &random) {
        case 0 where !notes.isEmpty:
            let note = notes.remove(at: notes.indices.randomElement(using: &random)!)
            return shown.delete(note.id, onAttempt: nil)
        case 1, 2:
            guard let index = notes.indices.randomElement(using: &random) else { fallthrough }
            notes[index].revision += 1
            return shown.update(notes[index].id, onAttempt: nil) { $0.revision += 1 }
        case 3, 4:
            let note = Note(id: label)
            notes.append(note)
            return shown.create(note, onAttempt: nil)
        case 5:
            text = label
            return shown.update(Self.shared.id, onAttempt: nil) { $0.text = label }
        case 6 where !tags.isEmpty:
            let tag = tags.remove(at: tags.indices.randomElement(using: &random)!)
            return shown.unlink(Self.shared.id, "tags", from: tag, onAttempt: nil)
        default:
            tags.append(label)
            return shown.link(Self.shared.id, "tags", to: label, onAttempt: nil)
        }
    }
}

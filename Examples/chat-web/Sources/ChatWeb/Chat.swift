import Foundation
import Trebuchet

/// Where a pointer is, in parts of the room's width and height.
struct Cursor: Codable, Sendable {
    var x: Double
    var y: Double
}

/// Somebody who is there now.
struct Person: Codable, Sendable, Identifiable {
    var id: UUID
    var name: String
    /// Absent while it is somewhere else.
    var cursor: Cursor?
}

struct Message: Codable, Sendable, Identifiable {
    var id = UUID()
    var author: UUID
    var name: String
    var text: String
    var date = Date()
}

/// Why the room does not take a message.
enum Refusal: Error, Codable, Sendable {
    case empty
    case tooLong(limit: Int)
}

/// A room: what was said, and who is there.
@Trebuchet
distributed actor Chat {
    private static let kept = 200

    @StreamedState(persisted: true) var messages: [Message] = []
    @StreamedState var people: [Person] = []
    private var connections: [UUID: CallerConnection] = [:]

    /// Shows somebody to all as long as the connection lasts; over the next one, he comes in again.
    ///
    /// Nobody is signed in here, so a page says itself who it is.
    distributed func enter(id: UUID, name: String) {
        let person = Person(id: id, name: String(name.prefix(24)))
        if let index = people.firstIndex(where: { $0.id == id }) {
            people[index].name = person.name
        } else {
            people.append(person)
        }
        guard let connection = Caller.current?.connection, connections[id] != connection else { return }
        connections[id] = connection
        connection.onClose { [weak self] in
            Task { await self?.whenLocal { $0.lost(connection, of: id) } }
        }
    }

    /// Moves somebody's cursor; null takes it away.
    distributed func point(id: UUID, to cursor: Cursor?) {
        guard let index = people.firstIndex(where: { $0.id == id }) else { return }
        people[index].cursor = cursor
    }

    /// Says something, once: a call that is repeated over a new connection is not done twice.
    @Idempotent
    distributed func say(_ text: String, id: UUID, name: String) throws(Refusal) -> Message {
        guard text.contains(where: { !$0.isWhitespace }) else { throw .empty }
        guard text.count <= 500 else { throw .tooLong(limit: 500) }
        let message = Message(author: id, name: String(name.prefix(24)), text: text)
        messages = messages.suffix(Self.kept - 1) + [message]
        return message
    }

    private func lost(_ connection: CallerConnection, of id: UUID) {
        // He may have come back over another one.
        guard connections[id] == connection else { return }
        connections[id] = nil
        people.removeAll { $0.id == id }
    }
}

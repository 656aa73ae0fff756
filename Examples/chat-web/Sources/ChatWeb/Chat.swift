import Foundation
import Trebuchet

/// The position of a pointer, as fractions of the room's width and height.
struct Cursor: Codable, Sendable {
    var x: Double
    var y: Double
}

/// A person in the room.
struct Person: Codable, Sendable, Identifiable {
    var id: UUID
    var name: String
    /// Absent while the pointer is outside of the room.
    var cursor: Cursor?
}

struct Message: Codable, Sendable, Identifiable {
    var id = UUID()
    var author: UUID
    var name: String
    var text: String
    var date = Date()
}

/// The reason why the room rejects a message.
enum Refusal: Error, Codable, Sendable {
    case empty
    case tooLong(limit: Int)
}

/// A room with its messages and people.
@Trebuchet
distributed actor Chat {
    private static let messageLimit = 200

    @StreamedState(persisted: true) var messages: [Message] = []
    @StreamedState var people: [Person] = []
    private var connections: [UUID: CallerConnection] = [:]

    /// Adds a person until the connection closes. The page calls it again over each new connection.
    ///
    /// This example has no sign-in, so the page chooses its id.
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

    /// Moves a person's cursor; null removes it.
    distributed func point(id: UUID, to cursor: Cursor?) {
        guard let index = people.firstIndex(where: { $0.id == id }) else { return }
        people[index].cursor = cursor
    }

    /// Adds a message. A call that is repeated over a new connection runs once.
    @Idempotent
    distributed func say(_ text: String, id: UUID, name: String) throws(Refusal) -> Message {
        guard text.contains(where: { !$0.isWhitespace }) else { throw .empty }
        guard text.count <= 500 else { throw .tooLong(limit: 500) }
        let message = Message(author: id, name: String(name.prefix(24)), text: text)
        messages = messages.suffix(Self.messageLimit - 1) + [message]
        return message
    }

    private func lost(_ connection: CallerConnection, of id: UUID) {
        // The person may have entered again over another connection.
        guard connections[id] == connection else { return }
        connections[id] = nil
        people.removeAll { $0.id == id }
    }
}

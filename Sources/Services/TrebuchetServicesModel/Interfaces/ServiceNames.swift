/// The names under which a server exposes the actors of its services.
package enum ServiceNames {
    /// The name of the authentication service.
    package static let auth = "auth"
    /// The beginning of the names of collections: `collections/<name>`.
    package static let collections = "collections"
    /// The beginning of the names of rooms: `rooms/<type>-<id>`.
    package static let rooms = "rooms"
    /// The beginning of the names of room lists: `room-lists/<type>`.
    package static let roomLists = "room-lists/"

    /// Returns the name of a collection's actor.
    package static func collection(_ name: String) -> String { "\(collections)/\(name)" }
    /// Returns the name of the list of the rooms of a type.
    package static func roomList(ofType type: String) -> String { "\(roomLists)\(type)" }
    /// Returns the name of a room's actor.
    package static func room(type: String, id: String) -> String { "\(rooms)/\(type)-\(id)" }
}

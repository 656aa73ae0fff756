internal import Trebuchet
internal import TrebuchetWire

/// The notes of a room for its next owner, when one of several nodes has it. The key `head` has the state of the room;
/// memberships, presences and stored events have a key each.
struct RoomHandoffSnapshot {
    struct Head: Codable {
        /// The epoch of the event numbers.
        let epoch: String
        /// The positions of earlier epochs.
        let earlier: [EventPosition]?
        /// The time of a planned handoff, in milliseconds since 1970; nil while a node owns the room, and after a crash.
        var left: Int?

        init(_ history: EventHistory, left: Int? = nil) {
            (epoch, earlier, self.left) = (history.epoch, history.position.earlier, left)
        }
    }

    struct MemberRecord: Codable {
        let token: String
        let attempt: String?
        let principal: String?
        /// The address of the client, whose quota the membership uses.
        let host: String?
        /// The position in the order of joins.
        let order: Int
    }

    static let head = "head"
    static func stay(_ stay: String) -> String { "stay.\(stay)" }
    static func shown(_ stay: String) -> String { "shown.\(stay)" }
    static func event(_ number: Int) -> String { "event.\(number)" }

    private(set) var head: Head?
    private(set) var stays: [(id: String, stay: MemberRecord)] = []
    private(set) var shown: [String: JSONValue] = [:]
    private(set) var events: [RoomEvent] = []

    init(_ noted: [String: [UInt8]]) throws {
        for (name, bytes) in noted {
            let parts = name.split(separator: ".", maxSplits: 1)
            switch (parts.first, parts.last.map(String.init)) {
            case ("head", _): head = try JSONValue(json: bytes).decode(Head.self)
            case ("stay", let id?): stays.append((id, try JSONValue(json: bytes).decode(MemberRecord.self)))
            case ("shown", let id?): shown[id] = try JSONValue(json: bytes)
            case ("event", _): events.append(try RoomEvent(json: bytes))
            default: break
            }
        }
        stays.sort { $0.stay.order < $1.stay.order }
        events.sort { $0.number < $1.number }
    }

    static func bytes(_ value: some Encodable) -> [UInt8]? { try? JSONValue(encoding: value).json }
    /// Encodes the event as it was received: its payload is validated JSON, which is not decoded here.
    static func bytes(_ event: RoomEvent) -> [UInt8]? { try? event.json() }
}

internal import Trebuchet
internal import TrebuchetWire

/// The handoff state of a room for its next owner, when one of several nodes has it. The key `head` has the state of the room;
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
    static func membershipKey(_ membershipID: String) -> String { "stay.\(membershipID)" }
    static func presenceKey(_ membershipID: String) -> String { "shown.\(membershipID)" }
    static func eventKey(_ number: Int) -> String { "event.\(number)" }

    private(set) var head: Head?
    private(set) var memberships: [(id: String, record: MemberRecord)] = []
    private(set) var presences: [String: StoredJSON] = [:]
    private(set) var events: [RoomEvent] = []

    init(_ entries: [String: [UInt8]]) throws {
        for (name, bytes) in entries {
            let parts = name.split(separator: ".", maxSplits: 1)
            switch (parts.first, parts.last.map(String.init)) {
            case ("head", _): head = try JSONValue(json: bytes).decode(Head.self)
            case ("stay", let id?): memberships.append((id, try JSONValue(json: bytes).decode(MemberRecord.self)))
            case ("shown", let id?): presences[id] = try StoredJSON(json: bytes)
            case ("event", _): events.append(try RoomEvent(json: bytes))
            default: break
            }
        }
        memberships.sort { $0.record.order < $1.record.order }
        events.sort { $0.number < $1.number }
    }

    static func bytes(_ value: some Encodable) -> [UInt8]? { try? JSONValue(encoding: value).json }
    /// Encodes the event as it was received: its payload is validated JSON, which is not decoded here.
    static func bytes(_ event: RoomEvent) -> [UInt8]? { try? event.json() }
}

internal import Trebuchet
internal import TrebuchetWire

/// What a room notes of itself for its next owner, where it lives on one node of several: under `head` what it is, and under names of
/// their own each stay, what each shows, and each event that it remembers.
struct KeptRoom {
    struct Head: Codable {
        /// Of the events' numbers.
        let epoch: String
        /// The lives before.
        let earlier: [EventPosition]?
        /// When its owner has let it go in order, in milliseconds since 1970; nil while it has it, and where it died.
        var left: Int?

        init(_ history: EventHistory, left: Int? = nil) {
            (epoch, earlier, self.left) = (history.epoch, history.position.earlier, left)
        }
    }

    struct Stay: Codable {
        let token: String
        let attempt: String?
        let principal: String?
        /// The address of its client, whose share it uses.
        let host: String?
        /// The order in which they came.
        let order: Int
    }

    static let head = "head"
    static func stay(_ stay: String) -> String { "stay.\(stay)" }
    static func shown(_ stay: String) -> String { "shown.\(stay)" }
    static func event(_ number: Int) -> String { "event.\(number)" }

    private(set) var head: Head?
    private(set) var stays: [(id: String, stay: Stay)] = []
    private(set) var shown: [String: JSONValue] = [:]
    private(set) var events: [RoomEvent] = []

    init(_ noted: [String: [UInt8]]) throws {
        for (name, bytes) in noted {
            let parts = name.split(separator: ".", maxSplits: 1)
            switch (parts.first, parts.last.map(String.init)) {
            case ("head", _): head = try JSONValue(json: bytes).decode(Head.self)
            case ("stay", let id?): stays.append((id, try JSONValue(json: bytes).decode(Stay.self)))
            case ("shown", let id?): shown[id] = try JSONValue(json: bytes)
            case ("event", _): events.append(try RoomEvent(json: bytes))
            default: break
            }
        }
        stays.sort { $0.stay.order < $1.stay.order }
        events.sort { $0.number < $1.number }
    }

    static func bytes(_ value: some Encodable) -> [UInt8]? { try? JSONValue(encoding: value).json }
    /// As it came: of a payload it is known that it is JSON, and nothing more.
    static func bytes(_ event: RoomEvent) -> [UInt8]? { try? event.json() }
}

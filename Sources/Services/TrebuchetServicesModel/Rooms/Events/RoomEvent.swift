package import Bytes
package import TrebuchetWire

// trebuchet: as declared
/// One event of a room, in its wire form.
package struct RoomEvent: Codable, Sendable, Equatable {
    /// Counts from 1, over all topics of the room.
    package let number: Int
    package let topic: String
    /// The membership that published the event.
    package let peer: String
    package let payload: EncodedJSON

    package init(number: Int, topic: String, peer: String, payload: EncodedJSON) {
        self.number = number
        self.topic = topic
        self.peer = peer
        self.payload = payload
    }
}

extension RoomEvent: DirectJSON {
    package init(json: inout JSONCursor, depth: Int) throws {
        var (number, topic, peer, payload): (Int?, String?, String?, EncodedJSON?)
        try json.eachMember(depth: depth) { json, name in
            switch name {
            case "number":
                guard case .integer(let value) = try JSONValue(json: &json, depth: depth + 1) else { return }
                number = Int(value)
            case "topic": topic = try JSONValue(json: &json, depth: depth + 1).textOrNull
            case "peer": peer = try JSONValue(json: &json, depth: depth + 1).textOrNull
            case "payload": payload = try EncodedJSON(json: &json, depth: depth + 1)
            default: _ = try json.value(depth: depth + 1)
            }
        }
        guard let number, let topic, let peer, let payload else {
            throw ValueError("an event of a room requires a number, a topic, a peer and a payload")
        }
        self.init(number: number, topic: topic, peer: peer, payload: payload)
    }

    package func write(json: inout ByteBuffer) {
        json.append(#"{"number":"# as StaticString)
        json.append(decimal: Int64(number))
        json.append(#","topic":"# as StaticString)
        JSONString.append(topic, to: &json)
        json.append(#","peer":"# as StaticString)
        JSONString.append(peer, to: &json)
        json.append(#","payload":"# as StaticString)
        payload.write(json: &json)
        json.append(UInt8(ascii: "}"))
    }
}

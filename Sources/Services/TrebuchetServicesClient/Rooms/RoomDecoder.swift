internal import Synchronization
internal import TrebuchetClient

/// Decodes presences and events of one type, and reports values that do not decode as `TrebuchetClient.Options.onUndecodable`
/// requires.
final class RoomDecoder<Value: Codable & Sendable>: Sendable {
    private let room: String
    private let stream: String
    private let kind: UndecodableValue.Kind
    private let report: @Sendable (UndecodableValue) -> Void
    private let count = Atomic<Int>(0)

    /// - Parameters:
    ///   - room: the name of the room's actor, as `rooms/chat-lobby`.
    ///   - stream: the topic, or `presence`.
    init(_ kind: UndecodableValue.Kind, of stream: String, in room: String, for client: TrebuchetClient) {
        (self.kind, self.stream, self.room) = (kind, stream, room)
        report = client.reportUndecodable
    }

    /// Returns the decoded value, or nil for a value of another type.
    ///
    /// - Parameter peer: the member that has sent the value.
    func decode(_ value: JSONValue, from peer: String) -> Value? {
        if let decoded = try? value.decode(Value.self) { return decoded }
        let text =
            "\(kind == .event ? "event of topic '\(stream)'" : "presence") of member '\(peer)' of room '\(room)' does not decode as "
            + "\(Value.self): \(value.mismatch(Value.self))"
        let count = count.add(1, ordering: .relaxed).newValue
        report(
            UndecodableValue(
                kind: kind, actor: room, stream: stream, error: TrebuchetError(.internal, text), count: count
            ))
        return nil
    }
}

/// The client's node of a forwarded connection. A reference: it adds only a pointer to an idle client connection.
final class Upstream: Sendable {
    /// Sends a frame to the client's node, after earlier messages to the client.
    private let sendFrame: @Sendable (RelayFrame.Kind, [UInt8]) -> Void
    /// The connection's names at that node and at this one: calls refer to them.
    let carried: CarriedName
    /// The prefix of the names of its streams.
    let streams: String

    init(
        carried: CarriedName, streams: String, sending send: @escaping @Sendable (RelayFrame.Kind, [UInt8]) -> Void
    ) {
        self.carried = carried
        self.streams = streams
        sendFrame = send
    }

    /// Sends a frame. Isolated to the connection's reactor.
    func send(_ kind: RelayFrame.Kind, _ payload: [UInt8] = []) { sendFrame(kind, payload) }
}

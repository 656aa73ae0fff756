/// The client's node of a forwarded connection. A reference: it adds only a pointer to an idle client connection.
final class ForwardingOrigin: Sendable {
    /// Sends a frame to the client's node, after earlier messages to the client.
    private let sendFrame: @Sendable (NodeFrame.Kind, [UInt8]) -> Void
    /// The connection's names at that node and at this one: calls refer to them.
    let carried: RemoteSessionAlias
    /// The prefix of the names of its streams.
    let streams: String

    init(
        carried: RemoteSessionAlias, streams: String,
        sending send: @escaping @Sendable (NodeFrame.Kind, [UInt8]) -> Void
    ) {
        self.carried = carried
        self.streams = streams
        sendFrame = send
    }

    /// Sends a frame. Isolated to the connection's reactor.
    func send(_ kind: NodeFrame.Kind, _ payload: [UInt8] = []) { sendFrame(kind, payload) }
}

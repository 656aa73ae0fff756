/// Where the client of a relayed connection is. Behind a reference: an idle connection of a client's own has room for no more.
final class Upstream: Sendable {
    /// Sends its node something, behind what was sent the client before.
    private let sendFrame: @Sendable (RelayFrame.Kind, [UInt8]) -> Void
    /// What the connection is called there, and here: calls name it.
    let carried: CarriedName
    /// What its streams' names begin with.
    let streams: String

    init(
        carried: CarriedName, streams: String, sending send: @escaping @Sendable (RelayFrame.Kind, [UInt8]) -> Void
    ) {
        self.carried = carried
        self.streams = streams
        sendFrame = send
    }

    /// On the connection's reactor.
    func send(_ kind: RelayFrame.Kind, _ payload: [UInt8] = []) { sendFrame(kind, payload) }
}

internal import Networking
internal import TrebuchetCluster
internal import WebSockets

/// The node that the ends of its direct links belong to. Callable from any thread.
protocol NodeLinkOwner: AnyObject, Sendable {
    var node: ClusterNode { get }
    /// Returns the announcement of a live node, including this one; nil if it cannot be reached directly.
    func announcement(of node: ClusterNode) -> NodeAnnouncement?
    /// Returns the number of the last message from a node that was handled, over any path.
    func handled(from node: ClusterNode) -> UInt64
    /// Handles a message of a node. Returns false if it is invalid.
    func receive(_ message: [UInt8], from node: ClusterNode) -> Bool
    /// Called when the last messages to a node may be lost.
    func mayHaveLost(_ node: ClusterNode)
}

/// The listener for direct links of other nodes.
final class NodeLinkListener: Sendable {
    /// The time within which a node must complete the handshake.
    static let timeout = Duration.seconds(5)
    /// The maximum size of a message before authentication. Unauthenticated connections together use at most 4 MiB, and node
    /// messages keep their memory.
    static let unauthenticatedMessageBytes = 4 << 10

    private let server: WebSocketServer

    /// Starts listening. Throws `TransportError`.
    init(at address: NodeAddress, _ peers: any NodeLinkOwner, on reactors: ReactorGroup) throws {
        server = try WebSocketServer(
            host: address.host, port: address.port, reactors: reactors, subprotocols: [NodeLinkMessage.subprotocol],
            limits: Self.limits
        ) { [weak peers] upgrade in
            guard let peers, upgrade.subprotocol == NodeLinkMessage.subprotocol else {
                return .reject(HTTPResponse(status: 400, text: "this port accepts cluster nodes only"))
            }
            return .accept(InboundNodeLink(peers), messageBytes: Self.unauthenticatedMessageBytes)
        }
    }

    /// The actual port.
    var port: Int { server.address.port }

    func close() async { await server.shutdown() }

    /// Limits for both ends: messages between nodes are within the limit of an engine's messages.
    static var limits: WebSocketLimits {
        var limits = WebSocketLimits()
        limits.handshakeTimeout = timeout
        limits.connections = 1_024
        limits.connectionsPerHost = 256
        // The limit for incomplete messages.
        limits.bufferedBytes = 256 << 20
        limits.pingInterval = .seconds(2)
        limits.pongTimeout = .seconds(3)
        return limits
    }
}

/// The accepting end of a direct link, authenticated or not.
///
/// `@unchecked Sendable`: its state is used on its socket's reactor only.
private final class InboundNodeLink: WebSocketHandler, @unchecked Sendable {
    /// The handshake state.
    private enum Phase {
        case unknown
        case challenged(ClusterNode, NodeLinkKeys)
        case known(ClusterNode, incoming: MessageAuthenticator, outgoing: MessageAuthenticator)
        case over
    }

    private let peers: any NodeLinkOwner
    private var phase = Phase.unknown

    init(_ peers: any NodeLinkOwner) { self.peers = peers }

    func webSocketDidOpen(_ socket: WebSocket) {
        _ = socket.reactor.schedule(after: NodeLinkListener.timeout) { [weak self, weak socket] in
            guard let self, let socket else { return }
            if case .known = phase { return }
            closeLink(socket, "failed to authenticate")
        }
    }

    func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode) {
        guard let message = NodeLinkMessage(Array(UnsafeRawBufferPointer(message))) else {
            return closeLink(socket, "invalid node message")
        }
        switch (phase, message) {
        case (.unknown, .hello(let sender, let receiver, let nonce)): challenge(socket, sender, receiver, nonce)
        case (.challenged(let node, let secrets), .proof(let proof)):
            guard Digest.areEqual(proof, secrets.proofOfSender) else {
                return closeLink(socket, "authentication as that node failed")
            }
            let seals = secrets.seals
            phase = .known(node, incoming: seals.ofSender, outgoing: seals.ofReceiver)
            socket.setMaximumMessageSize(NodeLinkListener.limits.messageBytes)
            sendReceivedCount(over: socket)
        case (.known(let node, var incoming, let outgoing), .sealed):
            guard let payload = incoming.open(message) else { return closeLink(socket, "invalid message seal") }
            phase = .known(node, incoming: incoming, outgoing: outgoing)
            // An empty message queries the number of handled messages.
            guard payload.isEmpty || peers.receive(payload, from: node) else {
                return closeLink(socket, "invalid message of the authenticated node")
            }
            sendReceivedCount(over: socket)
        default: closeLink(socket, "unexpected message")
        }
    }

    func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) { phase = .over }

    private func challenge(_ socket: WebSocket, _ sender: String, _ receiver: String, _ nonce: [UInt8]) {
        guard let node = ClusterNode(sender), receiver == peers.node.description,
            let peerInfo = peers.announcement(of: node), let own = peers.announcement(of: peers.node)
        else { return closeLink(socket, "unknown") }
        let secrets = NodeLinkKeys(
            sender: sender, receiver: receiver, nonces: (nonce, NodeLinkKeys.randomBytes(NodeLinkMessage.nonceBytes)),
            keys: (peerInfo.key, own.key))
        phase = .challenged(node, secrets)
        socket.send(
            binary: NodeLinkMessage.challenge(nonce: secrets.nonceOfReceiver, proof: secrets.proofOfReceiver).bytes)
    }

    private func sendReceivedCount(over socket: WebSocket) {
        guard case .known(let node, let incoming, var outgoing) = phase else { return }
        let message = outgoing.seal(NodeLinkAcknowledgement(received: peers.handled(from: node)).bytes)
        phase = .known(node, incoming: incoming, outgoing: outgoing)
        socket.send(binary: message.bytes)
    }

    private func closeLink(_ socket: WebSocket, _ reason: String) {
        if case .over = phase { return }
        phase = .over
        socket.close(code: .policyViolation, reason: reason)
    }
}

internal import Networking
internal import TrebuchetCluster
internal import WebSockets

/// What the ends of direct links ask of the node that has them. From any thread.
protocol DirectPeers: AnyObject, Sendable {
    var node: ClusterNode { get }
    /// What a node that lives has told of itself, of this one too; nil when it cannot be reached directly.
    func announcement(of node: ClusterNode) -> NodeAnnouncement?
    /// The number of the last message of a node's that was handled, however it came.
    func handled(from node: ClusterNode) -> UInt64
    /// Handles a message that a node has sent; false for what it would not have sent.
    func receive(_ message: [UInt8], from node: ClusterNode) -> Bool
    /// What was sent to a node last may have arrived, or not.
    func mayHaveLost(_ node: ClusterNode)
}

/// Where other nodes come in that reach this one directly.
final class DirectEntrance: Sendable {
    /// As long as a node may take to say who it is, and to prove it.
    static let patience = Duration.seconds(5)
    /// Of a message of somebody who has not proved who it is: so all strangers together hold 4 MiB, and nodes have the room of theirs.
    static let strangersMessageBytes = 4 << 10

    private let server: WebSocketServer

    /// Listens from now on. Throws `TransportError`.
    init(at address: NodeAddress, _ peers: any DirectPeers, on reactors: ReactorGroup) throws {
        server = try WebSocketServer(
            host: address.host, port: address.port, reactors: reactors, subprotocols: [DirectMessage.subprotocol],
            limits: Self.limits
        ) { [weak peers] upgrade in
            guard let peers, upgrade.subprotocol == DirectMessage.subprotocol else {
                return .reject(HTTPResponse(status: 400, text: "not for clients"))
            }
            return .accept(DirectVisitor(peers), messageBytes: Self.strangersMessageBytes)
        }
    }

    /// The real one.
    var port: Int { server.address.port }

    func close() async { await server.shutdown() }

    /// For both ends: messages between nodes are within that of an engine's.
    static var limits: WebSocketLimits {
        var limits = WebSocketLimits()
        limits.handshakeTimeout = patience
        limits.connections = 1_024
        limits.connectionsPerAddress = 256
        // Of messages that are not whole yet.
        limits.heldBytes = 256 << 20
        limits.pingInterval = .seconds(2)
        limits.pongTimeout = .seconds(3)
        return limits
    }
}

/// A node that has connected, or somebody who says so.
///
/// `@unchecked Sendable`: its state is touched on its socket's reactor alone.
private final class DirectVisitor: WebSocketHandler, @unchecked Sendable {
    private enum Phase {
        case unknown
        case challenged(ClusterNode, DirectSecrets)
        case known(ClusterNode, incoming: DirectSeal, outgoing: DirectSeal)
        case over
    }

    private let peers: any DirectPeers
    private var phase = Phase.unknown

    init(_ peers: any DirectPeers) { self.peers = peers }

    func webSocketDidOpen(_ socket: WebSocket) {
        _ = socket.reactor.schedule(after: DirectEntrance.patience) { [weak self, weak socket] in
            guard let self, let socket else { return }
            if case .known = phase { return }
            end(socket, "did not prove who it is")
        }
    }

    func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode) {
        guard let message = DirectMessage(Array(UnsafeRawBufferPointer(message))) else {
            return end(socket, "no message of a node")
        }
        switch (phase, message) {
        case (.unknown, .hello(let sender, let receiver, let nonce)): greet(socket, sender, receiver, nonce)
        case (.challenged(let node, let secrets), .proof(let proof)):
            guard Digest.areEqual(proof, secrets.proofOfSender) else { return end(socket, "not that node") }
            let seals = secrets.seals
            phase = .known(node, incoming: seals.ofSender, outgoing: seals.ofReceiver)
            socket.takeMessages(upTo: DirectEntrance.limits.messageBytes)
            tellCount(socket)
        case (.known(let node, var incoming, let outgoing), .sealed):
            guard let payload = incoming.open(message) else { return end(socket, "not sealed by that node") }
            phase = .known(node, incoming: incoming, outgoing: outgoing)
            // An empty one asks how many there were.
            guard payload.isEmpty || peers.receive(payload, from: node) else {
                return end(socket, "no message of that node")
            }
            tellCount(socket)
        default: end(socket, "out of turn")
        }
    }

    func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) { phase = .over }

    private func greet(_ socket: WebSocket, _ sender: String, _ receiver: String, _ nonce: [UInt8]) {
        guard let node = ClusterNode(sender), receiver == peers.node.description,
            let theirs = peers.announcement(of: node), let own = peers.announcement(of: peers.node)
        else { return end(socket, "unknown") }
        let secrets = DirectSecrets(
            sender: sender, receiver: receiver, nonces: (nonce, DirectSecrets.randomBytes(DirectMessage.nonceBytes)),
            keys: (theirs.key, own.key))
        phase = .challenged(node, secrets)
        socket.send(
            binary: DirectMessage.challenge(nonce: secrets.nonceOfReceiver, proof: secrets.proofOfReceiver).bytes)
    }

    private func tellCount(_ socket: WebSocket) {
        guard case .known(let node, let incoming, var outgoing) = phase else { return }
        let message = outgoing.seal(DirectCount(received: peers.handled(from: node)).bytes)
        phase = .known(node, incoming: incoming, outgoing: outgoing)
        socket.send(binary: message.bytes)
    }

    private func end(_ socket: WebSocket, _ reason: String) {
        if case .over = phase { return }
        phase = .over
        socket.close(code: .policyViolation, reason: reason)
    }
}

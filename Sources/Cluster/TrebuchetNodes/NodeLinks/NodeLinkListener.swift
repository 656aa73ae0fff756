internal import Networking
internal import Transports
internal import Trebuchet
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

/// The upgrade request of a link, after the TLS handshake.
enum NodeLinkRequest {
    /// The subprotocol of the WebSocket (RFC 6455 §1.9).
    static let subprotocol = "trebuchet.node.v2"
    /// The fields with both nodes. The certificates prove their names; the incarnations distinguish restarted processes.
    private static let (sender, receiver) = ("Trebuchet-Sender", "Trebuchet-Receiver")

    static func headers(from node: ClusterNode, to receiver: ClusterNode) -> HTTPHeaders {
        [Self.sender: node.description, Self.receiver: receiver.description]
    }

    /// Returns the node that requests a link, or the reason to reject it.
    ///
    /// - Parameter name: the name in the certificate of that node.
    static func sender(
        _ headers: HTTPHeaders, certificate name: String?, _ tls: NodeTLS, _ peers: any NodeLinkOwner
    ) -> Result<ClusterNode, NodeLinkRejection> {
        guard let sender = headers[Self.sender].flatMap({ ClusterNode($0) }) else {
            return .failure(NodeLinkRejection(400, "this port accepts cluster nodes only"))
        }
        guard name == tls.name(of: sender.name).text else {
            return .failure(NodeLinkRejection(403, "the certificate is not that of node \(sender.name)"))
        }
        guard headers[receiver] == peers.node.description else {
            return .failure(NodeLinkRejection(409, "this is another node or another incarnation of it"))
        }
        guard peers.announcement(of: sender) != nil else {
            return .failure(NodeLinkRejection(403, "node \(sender.name) is not in the list of live nodes"))
        }
        return .success(sender)
    }
}

/// The reason for which a link is rejected.
struct NodeLinkRejection: Error {
    let response: HTTPResponse

    init(_ status: Int, _ reason: String) { response = HTTPResponse(status: status, text: reason) }
}

/// The listener for direct links of other nodes.
///
/// A peer without a certificate of the cluster never gets beyond the TLS handshake. It costs the memory of an unfinished
/// handshake for at most 5 s. At the limit of connections a new one replaces the one that has waited longest.
final class NodeLinkListener: Sendable {
    /// The time within which a node must complete the handshake.
    static let timeout = Duration.seconds(5)

    /// The time between two log lines about rejected peers: nodes that reject each other try again every second.
    static let logPause = Duration.seconds(10)

    private let server: WebSocketServer

    /// Starts listening. Throws `TransportError`.
    ///
    /// - Parameter log: receives the reasons of rejections, at most one per `logPause`.
    init(
        at address: NodeAddress, _ peers: any NodeLinkOwner, _ identity: NodeLinkIdentity, on reactors: ReactorGroup,
        timeout: Duration = timeout, logPause: Duration = logPause, log: @escaping @Sendable (String) -> Void
    ) throws {
        var limits = Self.limits
        limits.handshakeTimeout = timeout
        let rejections = RejectionLog(pause: logPause, log)
        server = try WebSocketServer(
            host: address.host, port: address.port, reactors: reactors, subprotocols: [NodeLinkRequest.subprotocol],
            limits: limits, memory: nil,
            accept: { [weak peers] upgrade in
                guard let peers, upgrade.subprotocol == NodeLinkRequest.subprotocol else {
                    return .reject(HTTPResponse(status: 400, text: "this port accepts cluster nodes only"))
                }
                switch NodeLinkRequest.sender(
                    upgrade.request.headers, certificate: upgrade.clientCertificateName, identity.tls, peers)
                {
                case .success(let node): return .accept(InboundNodeLink(peers, node))
                case .failure(let rejection): return .reject(rejection.response)
                }
            },
            refused: { response, address in
                let peer = address.map { "\($0)" } ?? "a peer"
                rejections.logLine("rejected the node link of \(peer): \(RejectionLog.reason(response))")
            },
            context: { identity.tls.server },
            failedTLS: { rejections.logLine("rejected a node link: \($0.message)") },
            makesRoom: true)
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

/// The accepting end of a direct link.
private final class InboundNodeLink: WebSocketHandler {
    private let peers: any NodeLinkOwner
    private let node: ClusterNode

    init(_ peers: any NodeLinkOwner, _ node: ClusterNode) { (self.peers, self.node) = (peers, node) }

    func webSocketDidOpen(_ socket: WebSocket) { sendReceivedCount(over: socket) }

    func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode) {
        // An empty message queries the number of handled messages.
        guard message.isEmpty || peers.receive(Array(UnsafeRawBufferPointer(message)), from: node) else {
            return socket.close(code: .policyViolation, reason: "invalid message")
        }
        sendReceivedCount(over: socket)
    }

    private func sendReceivedCount(over socket: WebSocket) {
        socket.send(binary: NodeLinkAcknowledgement(received: peers.handled(from: node)).bytes)
    }
}

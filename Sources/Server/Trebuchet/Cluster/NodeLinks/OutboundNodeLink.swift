internal import Networking
internal import TrebuchetCluster
internal import WebSockets

/// A direct link to another node, over which this node sends messages.
///
/// A message is sent over it only if all earlier ones were handled there or are in transit on this link. This keeps the order,
/// although messages before the first one went through the engine.
///
/// `@unchecked Sendable`: its state is used on its reactor only.
final class OutboundNodeLink: WebSocketHandler, @unchecked Sendable {
    /// Receives whether the link has accepted a message.
    typealias Reply = @Sendable (Bool) -> Void

    /// The handshake state.
    private enum Phase {
        /// The peer is not authenticated.
        case handshake
        case authenticating(NodeLinkKeys)
        case open(outgoing: MessageAuthenticator, incoming: MessageAuthenticator)
        case over
    }

    /// The number of unacknowledged bytes above which nothing more is sent.
    private static let window = 8 << 20
    /// The minimum interval in nanoseconds of queries whether an earlier message, sent over another path, has arrived.
    private static let queryInterval: UInt64 = 20_000_000

    let node: ClusterNode
    let reactor: Reactor
    private let peers: any NodeLinkOwner
    private let nonce = NodeLinkKeys.randomBytes(NodeLinkMessage.nonceBytes)
    private var phase = Phase.handshake
    private var socket: WebSocket?
    /// The number of the last message that the peer has handled.
    private var received: UInt64 = 0
    /// The number of the last message sent over this link; nil before the first.
    private var sent: UInt64?
    /// The numbers and sizes of the messages in transit.
    private var underWay: [(number: UInt64, bytes: Int)] = []
    private var underWayBytes = 0
    private var lastQueryTime: UInt64 = 0
    /// A message that waits for the window or for the reply to a query.
    private var waiting: (number: UInt64, bytes: [UInt8], isAsking: Bool, answer: Reply)?
    private let didEnd: @Sendable (OutboundNodeLink, _ reason: String) -> Void
    private let didOpen: @Sendable () -> Void

    init(
        to node: ClusterNode, _ peers: any NodeLinkOwner, on reactor: Reactor, didOpen: @escaping @Sendable () -> Void,
        didEnd: @escaping @Sendable (OutboundNodeLink, _ reason: String) -> Void
    ) {
        (self.node, self.peers, self.reactor, self.didOpen, self.didEnd) = (node, peers, reactor, didOpen, didEnd)
    }

    /// Connects. Failures are reported by `didEnd`.
    func connect(to address: NodeAddress) async {
        do {
            let host = address.host.contains(":") ? "[\(address.host)]" : address.host
            _ = try await WebSocketClient.connect(
                to: "ws://\(host):\(address.port)/", subprotocols: [NodeLinkMessage.subprotocol],
                limits: NodeLinkListener.limits, reactors: ReactorGroup([reactor])
            ) { [self] socket in
                self.socket = socket
                return self
            }
        } catch {
            let reason = "\(error)"
            reactor.execute { self.closeLink(reason) }
        }
    }

    func reset() { reactor.execute { self.closeLink("cut") } }

    /// Closes after all sent messages are written.
    func close() { reactor.execute { self.closeLink("closed", inOrder: true) } }

    // MARK: Sending; on the reactor

    /// Sends a message if it is next in order; `answer` receives false if it must take another path.
    func send(_ bytes: [UInt8], number: UInt64, _ answer: @escaping Reply) {
        guard case .open = phase, waiting == nil else { return answer(false) }
        if received &+ 1 == number || sent.map({ $0 &+ 1 == number }) == true {
            guard underWayBytes < Self.window else {
                waiting = (number, bytes, false, answer)
                return
            }
            return put(bytes, number, answer)
        }
        guard reactor.now &- lastQueryTime > Self.queryInterval else { return answer(false) }
        lastQueryTime = reactor.now
        waiting = (number, bytes, true, answer)
        write([])
    }

    private func put(_ bytes: [UInt8], _ number: UInt64, _ answer: Reply) {
        sent = number
        underWay.append((number, bytes.count))
        underWayBytes += bytes.count
        write(bytes)
        answer(true)
    }

    private func write(_ payload: [UInt8]) {
        guard case .open(var outgoing, let incoming) = phase else { return }
        let message = outgoing.seal(payload)
        phase = .open(outgoing: outgoing, incoming: incoming)
        socket?.send(binary: message.bytes)
    }

    // MARK: Receiving

    func webSocketDidOpen(_ socket: WebSocket) {
        guard case .handshake = phase else { return socket.close() }
        let hello = NodeLinkMessage.hello(from: peers.node.description, to: node.description, nonce: nonce)
        socket.send(binary: hello.bytes)
        _ = reactor.schedule(after: NodeLinkListener.timeout, for: self) { link in
            switch link.phase {
            case .handshake, .authenticating: link.closeLink("failed to authenticate")
            case .open, .over: break
            }
        }
    }

    func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode) {
        guard let message = NodeLinkMessage(Array(UnsafeRawBufferPointer(message))) else {
            return closeLink("sent an invalid node message")
        }
        switch (phase, message) {
        case (.handshake, .challenge(let other, let proof)):
            guard let peerInfo = peers.announcement(of: node), let own = peers.announcement(of: peers.node) else {
                return closeLink("is not in the list of live nodes")
            }
            let secrets = NodeLinkKeys(
                sender: peers.node.description, receiver: node.description, nonces: (nonce, other),
                keys: (own.key, peerInfo.key))
            guard Digest.areEqual(proof, secrets.proofOfReceiver) else {
                return closeLink("failed to authenticate as that node")
            }
            phase = .authenticating(secrets)
            socket.send(binary: NodeLinkMessage.proof(secrets.proofOfSender).bytes)
        case (.authenticating(let secrets), .sealed):
            let seals = secrets.seals
            phase = .open(outgoing: seals.ofSender, incoming: seals.ofReceiver)
            if handleAcknowledgement(message) { didOpen() }
        case (.open, .sealed): _ = handleAcknowledgement(message)
        default: closeLink("sent an unexpected message")
        }
    }

    func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {
        closeLink(reason.isEmpty ? "the connection was lost" : reason)
    }

    /// Handles the number of messages that have arrived.
    private func handleAcknowledgement(_ message: NodeLinkMessage) -> Bool {
        guard case .open(let outgoing, var incoming) = phase, let payload = incoming.open(message),
            let count = NodeLinkAcknowledgement(payload)
        else {
            closeLink("sent a message with an invalid seal")
            return false
        }
        phase = .open(outgoing: outgoing, incoming: incoming)
        received = count.received
        while let first = underWay.first, first.number <= received {
            underWay.removeFirst()
            underWayBytes -= first.bytes
        }
        guard let next = waiting, next.isAsking || underWayBytes < Self.window else { return true }
        waiting = nil
        if next.isAsking, received &+ 1 != next.number {
            next.answer(false)
        } else {
            put(next.bytes, next.number, next.answer)
        }
        return true
    }

    private func closeLink(_ reason: String, inOrder: Bool = false) {
        if case .over = phase { return }
        phase = .over
        // It is unknown whether these messages have arrived.
        if !underWay.isEmpty { peers.mayHaveLost(node) }
        waiting?.answer(false)
        waiting = nil
        if inOrder { socket?.close(code: .goingAway) } else { socket?.abort() }
        socket = nil
        didEnd(self, reason)
    }
}

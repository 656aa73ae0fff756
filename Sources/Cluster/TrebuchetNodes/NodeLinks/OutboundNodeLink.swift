internal import Networking
internal import Transports
internal import TrebuchetCluster
internal import WebSockets

/// A direct link to another node, over which this node sends messages.
///
/// A message is sent over it only if all earlier ones were handled there or are in transit on this link. This keeps the order,
/// although messages before the first one went through the engine.
final class OutboundNodeLink: WebSocketHandler, Sendable {
    /// Receives whether the link has accepted a message.
    typealias Reply = @Sendable (Bool) -> Void

    /// The state of the connection.
    private enum Phase { case connecting, open, over }

    /// The connection and the messages, on the reactor.
    private struct State {
        var phase = Phase.connecting
        var socket: WebSocket?
        /// The number of the last message that the peer has handled.
        var received: UInt64 = 0
        /// The number of the last message sent over this link; nil before the first.
        var sent: UInt64?
        /// The numbers and sizes of the messages in transit.
        var underWay: [(number: UInt64, bytes: Int)] = []
        var underWayBytes = 0
        var lastQueryTime: UInt64 = 0
        /// A message that waits for the window or for the reply to a query.
        var waiting: (number: UInt64, bytes: [UInt8], isAsking: Bool, answer: Reply)?

        /// Handles an acknowledgement. Returns the waiting message if it need not wait any more.
        mutating func acknowledge(
            upTo number: UInt64, window: Int
        ) -> (number: UInt64, bytes: [UInt8], isAsking: Bool, answer: Reply)? {
            phase = .open
            received = number
            while let first = underWay.first, first.number <= received {
                underWay.removeFirst()
                underWayBytes -= first.bytes
            }
            guard let next = waiting, next.isAsking || underWayBytes < window else { return nil }
            waiting = nil
            return next
        }
    }

    /// The number of unacknowledged bytes above which nothing more is sent.
    private static let window = 8 << 20
    /// The minimum interval in nanoseconds of queries whether an earlier message, sent over another path, has arrived.
    private static let queryInterval: UInt64 = 20_000_000

    let node: ClusterNode
    let reactor: Reactor
    private let peers: any NodeLinkOwner
    private let identity: NodeLinkIdentity
    private let state: LoopVariable<State>
    private let didEnd: @Sendable (OutboundNodeLink, _ reason: String) -> Void
    private let didOpen: @Sendable () -> Void

    init(
        to node: ClusterNode, _ peers: any NodeLinkOwner, _ identity: NodeLinkIdentity, on reactor: Reactor,
        didOpen: @escaping @Sendable () -> Void,
        didEnd: @escaping @Sendable (OutboundNodeLink, _ reason: String) -> Void
    ) {
        (self.node, self.peers, self.identity, self.reactor) = (node, peers, identity, reactor)
        (self.didOpen, self.didEnd) = (didOpen, didEnd)
        state = LoopVariable(State(), on: reactor)
    }

    /// Connects. Failures are reported by `didEnd`.
    func connect(to address: NodeAddress) async {
        do {
            await identity.refresh()
            let host = address.host.contains(":") ? "[\(address.host)]" : address.host
            let tls = identity.tls
            _ = try await WebSocketClient.connect(
                to: WebSocketURL("wss://\(host):\(address.port)/"), peerName: tls.name(of: node.name).text,
                subprotocols: [NodeLinkRequest.subprotocol],
                headers: NodeLinkRequest.headers(from: peers.node, to: node), limits: NodeLinkListener.limits,
                reactors: ReactorGroup([reactor]), context: { tls.client }
            ) { [self] socket in
                self.state.value.socket = socket
                return self
            }
        } catch {
            if (error as? TransportError)?.code == .tls { identity.didFail() }
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
        guard case .open = state.value.phase, state.value.waiting == nil else { return answer(false) }
        if state.value.received &+ 1 == number || state.value.sent.map({ $0 &+ 1 == number }) == true {
            guard state.value.underWayBytes < Self.window else {
                state.value.waiting = (number, bytes, false, answer)
                return
            }
            return put(bytes, number, answer)
        }
        guard reactor.now &- state.value.lastQueryTime > Self.queryInterval else { return answer(false) }
        state.value.lastQueryTime = reactor.now
        state.value.waiting = (number, bytes, true, answer)
        state.value.socket?.send(binary: [])
    }

    private func put(_ bytes: [UInt8], _ number: UInt64, _ answer: Reply) {
        state.value.sent = number
        state.value.underWay.append((number, bytes.count))
        state.value.underWayBytes += bytes.count
        state.value.socket?.send(binary: bytes)
        answer(true)
    }

    // MARK: Receiving

    func webSocketDidOpen(_ socket: WebSocket) {
        guard case .connecting = state.value.phase else { return socket.close() }
        _ = reactor.schedule(after: NodeLinkListener.timeout, for: self) { link in
            if case .connecting = link.state.value.phase { link.closeLink("did not report its received messages") }
        }
    }

    /// Handles the number of messages that have arrived.
    func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode) {
        if case .over = state.value.phase { return }
        guard let count = NodeLinkAcknowledgement(Array(UnsafeRawBufferPointer(message))) else {
            return closeLink("sent an invalid message")
        }
        let isFirst = if case .connecting = state.value.phase { true } else { false }
        let next = state.value.acknowledge(upTo: count.received, window: Self.window)
        if isFirst { didOpen() }
        guard let next else { return }
        if next.isAsking, count.received &+ 1 != next.number {
            next.answer(false)
        } else {
            put(next.bytes, next.number, next.answer)
        }
    }

    func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {
        closeLink(reason.isEmpty ? "the connection was lost" : reason)
    }

    private func closeLink(_ reason: String, inOrder: Bool = false) {
        if case .over = state.value.phase { return }
        state.value.phase = .over
        // It is unknown whether these messages have arrived.
        if !state.value.underWay.isEmpty { peers.mayHaveLost(node) }
        let (waiting, socket) = (state.value.waiting, state.value.socket)
        (state.value.waiting, state.value.socket) = (nil, nil)
        waiting?.answer(false)
        if inOrder { socket?.close(code: .goingAway) } else { socket?.abort() }
        didEnd(self, reason)
    }
}

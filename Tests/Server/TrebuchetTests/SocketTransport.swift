import TrebuchetClient
import WebSockets

struct SocketTransport: ClientTransport {
    let address: String  // ws://localhost:8080

    func open(_ request: ConnectionRequest, _ receiver: ConnectionReceiver) async throws {
        var limits = WebSocketLimits()
        limits.handshakeTimeout = request.timeout
        limits.messageBytes = request.messageSize
        limits.frameBytes = request.messageSize
        limits.pingInterval = request.pingInterval
        limits.pongTimeout = request.pongTimeout
        let wanted = request.subprotocol
        let socket = try await WebSocketClient.connect(
            to: address, subprotocols: [wanted], headers: request.headers, limits: limits
        ) { socket in SocketLink(socket, receiver, wanted) }
        guard socket.subprotocol == wanted else {
            socket.close(code: .protocolError)
            throw TransportError(
                .handshake, "\(address) does not speak \(wanted)", cause: SubprotocolNotSupported(wanted))
        }
    }
}

final class SocketLink: ClientLink, WebSocketHandler {
    private let socket: WebSocket
    private let receiver: ConnectionReceiver
    private let wanted: String

    init(_ socket: WebSocket, _ receiver: ConnectionReceiver, _ wanted: String) {
        self.socket = socket
        self.receiver = receiver
        self.wanted = wanted
    }

    // Called by the socket, on its thread.
    func webSocketDidOpen(_ socket: WebSocket) {
        if socket.subprotocol == wanted { receiver.linkDidOpen(self) }
    }

    func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode) {
        receiver.didReceive(UnsafeRawBufferPointer(message))
    }

    func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {
        receiver.linkDidClose(TransportError(.closed, "the connection was closed (\(code)): \(reason)"))
    }

    // Called by the client, on its queue.
    var callSession: String? { socket.responseHeaders["Trebuchet-Session"] }

    func send(_ message: [UInt8]) { socket.send(text: String(decoding: message, as: UTF8.self)) }

    func close() { socket.close() }
}

internal import Transports
internal import TrebuchetClient
internal import TrebuchetWire
internal import WebSockets

/// A client's connection over a WebSocket. Only on the client's reactor.
final class WebSocketClientLink: ClientLink, WebSocketHandler {
    private let receiver: ConnectionReceiver
    private let socket: WebSocket
    private let address: String
    /// The required subprotocol.
    private let requiredSubprotocol: String

    init(_ receiver: ConnectionReceiver, _ socket: WebSocket, _ address: String, speaking wanted: String) {
        self.receiver = receiver
        self.socket = socket
        self.address = address
        self.requiredSubprotocol = wanted
    }

    // MARK: WebSocketHandler

    func webSocketDidOpen(_ socket: WebSocket) {
        if socket.subprotocol == requiredSubprotocol { receiver.linkDidOpen(self) }
    }

    func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode) {
        receiver.didReceive(UnsafeRawBufferPointer(message))
    }

    func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {
        let text = "the connection to \(address) was closed (\(code)\(reason.isEmpty ? "" : ": \(reason)"))"
        let isRefusal = code == .messageTooBig && socket.violation == nil
        receiver.linkDidClose(TransportError(.closed, text, cause: isRefusal ? MessageTooLarge() : nil))
    }

    // MARK: ClientLink

    var callSession: String? { socket.responseHeaders[HandshakeField.session] }

    func send(_ message: [UInt8]) { message.withUnsafeBytes { socket.send(.text, $0) } }

    func close() { socket.close(code: .normal) }
}

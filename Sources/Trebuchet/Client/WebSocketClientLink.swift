internal import Networking
internal import TrebuchetWire
internal import WebSockets

/// A client's connection over a WebSocket.
final class WebSocketClientLink: ClientLink, WebSocketHandler {
    private let core: ClientCore
    private let socket: WebSocket
    /// Of the attempt that it came of.
    private let number: Int

    private init(_ core: ClientCore, _ socket: WebSocket, _ number: Int) {
        self.core = core
        self.socket = socket
        self.number = number
    }

    /// Connects, and hands the connection to `core`.
    static func connect(
        _ core: ClientCore, attempt: Int, host: String, port: Int, _ security: TrebuchetTransport.Security,
        compression: WebSocketCompression?
    ) async throws {
        var limits = WebSocketLimits()
        limits.handshakeTimeout = core.options.connectTimeout
        limits.messageBytes = core.options.messageSize
        limits.frameBytes = core.options.messageSize
        limits.pingInterval = core.options.pingInterval
        limits.pongTimeout = core.options.pongTimeout
        let authority = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        let tls: TLSClientSettings
        switch security {
        case .none: tls = TLSClientSettings()
        case .client(let settings): tls = settings
        case .server: throw TransportError(.tls, "a client needs TLSClientSettings")
        }
        var headers = try await core.options.requestHeaders
        headers.remove(MessageSizes.header)
        headers.add(MessageSizes.header, String(core.options.messageSize))
        let socket = try await WebSocketClient.connect(
            to: "\(security.scheme)://\(authority)/", subprotocols: [ProtocolVersion.subprotocol], headers: headers,
            limits: limits, tls: tls, compression: compression, reactors: ReactorGroup([core.reactor])
        ) { WebSocketClientLink(core, $0, attempt) }
        guard socket.subprotocol == ProtocolVersion.subprotocol else {
            socket.close(code: .protocolError, reason: "needs \(ProtocolVersion.subprotocol)")
            throw TransportError(
                .handshake, "\(core.peerName) does not speak \(ProtocolVersion.subprotocol): is it a Trebuchet server?")
        }
    }

    // MARK: WebSocketHandler

    func webSocketDidOpen(_ socket: WebSocket) {
        if socket.subprotocol == ProtocolVersion.subprotocol { core.connection.opened(self, number: number) }
    }

    func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode) {
        core.receive(UnsafeRawBufferPointer(message), over: number)
    }

    func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {
        let text = "the connection to \(core.peerName) was closed (\(code)\(reason.isEmpty ? "" : ": \(reason)"))"
        let isRefusal = code == .messageTooBig && socket.violation == nil
        core.connection.lost(
            number: number, TransportError(.closed, text, cause: isRefusal ? MessageSizes.Refusal() : nil))
    }

    // MARK: ClientLink

    var session: String? { socket.responseHeaders[SessionNames.header] }

    func send(_ message: [UInt8]) { message.withUnsafeBytes { socket.send(.text, $0) } }

    func close() { socket.close(code: .normal) }
}

import WebSockets

final class Echo: WebSocketHandler {
    func webSocket(
        _ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode
    ) {
        socket.send(opcode, UnsafeRawBufferPointer(message))
    }
}

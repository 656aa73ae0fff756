import WebSockets

final class Echo: WebSocketHandler {
    func webSocket(
        _ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode
    ) {
        socket.send(opcode, UnsafeRawBufferPointer(message))
    }
}

func startEchoServer(port: Int) throws -> WebSocketServer {
    try WebSocketServer(port: port) { upgrade in
        guard upgrade.request.path == "/echo" else {
            return .reject(HTTPResponse(status: 404, text: "nothing here"))
        }
        return .accept(Echo())
    }
}

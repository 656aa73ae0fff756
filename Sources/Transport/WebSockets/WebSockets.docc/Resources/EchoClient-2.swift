import WebSockets

final class Mailbox: WebSocketHandler {
    private let texts: AsyncStream<String>.Continuation

    init(_ texts: AsyncStream<String>.Continuation) { self.texts = texts }

    func webSocket(
        _ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode
    ) {
        // The bytes are valid only during this call, so they are copied.
        if opcode == .text { texts.yield(String(decoding: message, as: UTF8.self)) }
    }

    func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {
        texts.finish()
    }
}

func echo(_ text: String, port: Int) async throws -> String? {
    let (texts, continuation) = AsyncStream.makeStream(of: String.self)
    let socket = try await WebSocketClient.connect(to: "ws://127.0.0.1:\(port)/echo") { _ in
        Mailbox(continuation)
    }
    socket.send(text: text)
    let answer = await texts.first { _ in true }
    socket.close()
    return answer
}

import Commands
import Networking
import Trebuchet
import WebSockets

/// `trebuchet bench echo-server`: a bare WebSocket echo, to measure the transport alone and to test it with Autobahn.
enum EchoServer {
    /// Compresses every message, as the suite's compression cases expect.
    static var compression: WebSocketCompression {
        var compression = WebSocketCompression()
        compression.threshold = 1
        compression.serverNoContextTakeover = false
        compression.clientNoContextTakeover = false
        return compression
    }

    static func run(_ arguments: ParsedArguments) async throws {
        let host = arguments.string("--host") ?? "127.0.0.1"
        let port = try arguments.int("--port", in: 0...65535) ?? 9001
        let reactors = try arguments.int("--reactors", in: 1...1024) ?? 1
        let signals = ShutdownSignals()
        let server = try WebSocketServer(
            host: host, port: port, reactors: try ReactorGroup.servers(count: reactors), limits: .wide,
            tls: try TLSOptions.server(arguments), compression: arguments.has("--compression") ? compression : nil
        ) { _ in .accept(Echo()) }
        Console.announce("echoes on \(arguments.has("--tls-cert") ? "wss" : "ws")://\(server.address) (WebSocket)")
        await signals.first()
        await server.shutdown()
    }
}

/// Echoes each message.
private final class Echo: WebSocketHandler {
    func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode) {
        socket.send(opcode, received: message)
    }
}

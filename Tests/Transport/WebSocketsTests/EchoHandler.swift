import Bytes
import Networking

import Transports
@testable import WebSockets

/// Echoes its input, and follows commands in some texts. Reports ends to `endings`.
final class EchoHandler: WebSocketHandler {
    struct Ending: Equatable, Sendable {
        let code: WebSocketCloseCode
        let reason: String
    }

    private let endings: AsyncStream<Ending>.Continuation?

    init(endings: AsyncStream<Ending>.Continuation? = nil) { self.endings = endings }

    func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode) {
        switch String(decoding: message.prefix(20), as: UTF8.self) {
        case "please close": socket.close(code: .policyViolation, reason: "as you wish")
        case "please abort": socket.abort()
        case "please pause":
            socket.pauseReading()
            socket.reactor.schedule(after: .milliseconds(20)) {
                socket.send(text: "resumed")
                socket.resumeReading()
            }
        case "64 KiB": socket.send(.binary, expecting: 65_536) { $0.append([UInt8](repeating: 7, count: 65_536)) }
        default: socket.send(opcode, received: message)
        }
    }

    func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {
        endings?.yield(Ending(code: code, reason: reason))
    }
}

/// An echo server on a free port, and the ends of its connections in order.
struct EchoServer {
    let server: WebSocketServer
    var endings: AsyncStream<EchoHandler.Ending>.Iterator

    var port: Int { server.address.port }

    init(limits: WebSocketLimits = WebSocketLimits()) throws {
        let (stream, continuation) = AsyncStream.makeStream(of: EchoHandler.Ending.self)
        endings = stream.makeAsyncIterator()
        server = try WebSocketServer(
            port: 0, subprotocols: ["v2", "v1"], limits: limits,
            http: { $0.path == "/healthz" ? HTTPResponse(status: 200, text: "ok") : nil },
            accept: { upgrade in
                upgrade.request.path == "/"
                    ? .accept(EchoHandler(endings: continuation))
                    : .reject(HTTPResponse(status: 404, text: "nothing at \(upgrade.request.path)"))
            })
    }

    mutating func nextEnding() async -> EchoHandler.Ending? { await endings.next() }
}

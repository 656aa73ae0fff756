import Testing

import Transports
@testable import WebSockets

/// Requirements of RFC 6455 for a server that no other test covers, over a real socket with hand-written bytes.
@Suite("RFC 6455: the server", .dedicatedThreads) struct ServerConformanceTests {
    private static let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    private static let basis = "Host: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"

    @Test(
        "§4.2.1, §11.3: key, version and host must occur once",
        arguments: [
            ("", key + "Sec-WebSocket-Version: 13\r\n", 101),
            ("", key + key + "Sec-WebSocket-Version: 13\r\n", 400),
            ("", key + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Version: 13\r\n", 400),
            ("", "Sec-WebSocket-Version: 13\r\n", 400), ("", key, 400),
            ("Host: h\r\n", key + "Sec-WebSocket-Version: 13\r\n", 400),
            ("", key + "Sec-WebSocket-Version: 14\r\n", 426), ("", key + "Sec-WebSocket-Version: 013\r\n", 426),
        ])
    func fields(_ before: String, _ fields: String, _ status: Int) throws {
        let server = try EchoServer()
        let peer = try RawPeer(port: server.port)
        try peer.send(Array("GET / HTTP/1.1\r\n\(before)\(Self.basis)\(fields)\r\n".utf8))
        let head = try peer.receiveHead()
        #expect(head.hasPrefix("HTTP/1.1 \(status) "))
        if status == 426 { #expect(head.contains("\r\nSec-WebSocket-Version: 13\r\n"), "§4.4") }
    }

    @Test("§4.2.2: the response to an upgrade has the RFC's fields, and names no unsupported extension")
    func answer() throws {
        let server = try EchoServer()
        let peer = try RawPeer(port: server.port)
        let more = "Sec-WebSocket-Extensions: x-unknown; a=1\r\nSec-WebSocket-Protocol: unknown\r\n"
        try peer.send(RawPeer.upgrade("/", more))
        let lines = try peer.receiveHead().split(separator: "\r\n")
        #expect(lines.first == "HTTP/1.1 101 Switching Protocols")
        #expect(lines.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="))
        #expect(lines.contains("Upgrade: websocket"))
        #expect(lines.contains("Connection: Upgrade"))
        #expect(!lines.contains { $0.hasPrefix("Sec-WebSocket-Extensions") || $0.hasPrefix("Sec-WebSocket-Protocol") })
    }

    /// Closes at once, then tries to send.
    private final class SendingAfterClose: WebSocketHandler {
        func webSocketDidOpen(_ socket: WebSocket) {
            socket.close(code: .normal)
            socket.send(text: "too late")
            socket.ping()
            socket.close(code: .goingAway)
        }
        func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode)
        {}
    }

    @Test("§5.5.1, §6.1: no frame follows a close frame; the server ends the connection (§7.1.1)")
    func nothingBehindClose() async throws {
        let server = try WebSocketServer(port: 0) { _ in .accept(SendingAfterClose()) }
        let peer = try RawPeer.upgraded(port: server.address.port)
        #expect(try peer.receiveFrame() == RawPeer.Frame(opcode: 8, payload: [0x03, 0xE8]))
        try peer.send(close(1000))
        #expect(try peer.receiveToEnd() == [])
    }

    @Test("§5.5.2, §5.5.3: a pong has the payload of its ping; an unsolicited pong is no error")
    func pong() throws {
        let server = try EchoServer()
        let peer = try RawPeer.upgraded(port: server.port)
        for count in [0, 1, 124, 125] {
            let payload = (0..<count).map { UInt8($0) }
            try peer.send(frame(10, payload) + frame(9, payload))
            #expect(try peer.receiveFrame() == RawPeer.Frame(opcode: 10, payload: payload))
        }
    }

    @Test("§5.4: control frames may come between fragments, which are joined in order")
    func fragments() throws {
        let server = try EchoServer()
        let peer = try RawPeer.upgraded(port: server.port)
        try peer.send(text("a", fin: false) + frame(9, [1]) + frame(0, [0x62], fin: false) + frame(9, [2]))
        #expect(try peer.receiveFrame() == RawPeer.Frame(opcode: 10, payload: [1]))
        #expect(try peer.receiveFrame() == RawPeer.Frame(opcode: 10, payload: [2]))
        try peer.send(frame(0, [0x63]))
        #expect(try peer.receiveFrame() == RawPeer.Frame(opcode: 1, payload: Array("abc".utf8)))
    }

    @Test(
        "§7.4: valid codes of a close frame are echoed, others fail the connection",
        arguments: [
            (true, [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999]),
            (false, [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535]),
        ] as [(Bool, [UInt16])])
    func codes(_ isGood: Bool, _ codes: [UInt16]) throws {
        let server = try EchoServer()
        for code in codes {
            let peer = try RawPeer.upgraded(port: server.port)
            try peer.send(close(code))
            let answer = try peer.receiveFrame()
            #expect(answer.opcode == 8)
            let wanted = isGood ? code : 1002
            #expect(answer.payload.prefix(2).elementsEqual([UInt8(wanted >> 8), UInt8(wanted & 0xFF)]), "\(code)")
            // The same rule applies to codes that the user sends.
            let ours = ClosePayload(code: WebSocketCloseCode(rawValue: code)).encoded
            #expect(ours.isEmpty == !isGood, "\(code)")
        }
    }

    @Test("§5.2: sent frames have the shortest form of their length", arguments: [0, 125, 126, 65_535, 65_536])
    func shortestLength(_ count: Int) throws {
        let server = try EchoServer()
        let peer = try RawPeer.upgraded(port: server.port)
        try peer.send(frame(2, [UInt8](repeating: 1, count: count)))
        let header = try peer.receive(2)
        #expect(header[0] == 0x82)
        #expect(header[1] == (count < 126 ? UInt8(count) : count < 65_536 ? 126 : 127), "not masked (§5.1)")
    }
}

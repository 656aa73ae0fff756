import Networking
import TestSupport
import Testing

import Transports
@testable import WebSockets

@Suite("WebSocketServer over real sockets", .dedicatedThreads)
struct WebSocketServerTests {
    private typealias Frame = RawPeer.Frame

    private func ending(_ code: WebSocketCloseCode, _ reason: String = "") -> EchoHandler.Ending {
        EchoHandler.Ending(code: code, reason: reason)
    }

    @Test("messages of every length class are echoed, one by one and all at once")
    func echo() throws {
        let server = try EchoServer()
        let peer = try RawPeer.upgraded(port: server.port)
        let payloads = [0, 1, 125, 126, 4_095, 4_096, 9_000, 65_535, 65_536, 300_000].map { length in
            (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 13) }
        }
        for payload in payloads {
            try peer.send(frame(2, payload))
            #expect(try peer.receiveFrame() == Frame(opcode: 2, payload: payload))
        }
        try peer.send(payloads.flatMap { frame(2, $0) })
        for payload in payloads { #expect(try peer.receiveFrame() == Frame(opcode: 2, payload: payload)) }
    }

    @Test("frames may arrive with the request, split anywhere")
    func pieces() throws {
        let server = try EchoServer()
        let bytes = RawPeer.upgrade() + text("one") + text("tw", fin: false) + frame(9, [5]) + frame(0, Array("o".utf8))
        for size in [bytes.count, 1, 40] {
            let peer = try RawPeer(port: server.port)
            for start in stride(from: 0, to: bytes.count, by: size) {
                try peer.send(Array(bytes[start..<min(start + size, bytes.count)]))
            }
            #expect(try peer.receiveHead().hasPrefix("HTTP/1.1 101 "))
            #expect(try peer.receiveFrame() == Frame(opcode: 1, payload: Array("one".utf8)))
            #expect(try peer.receiveFrame() == Frame(opcode: 10, payload: [5]))
            #expect(try peer.receiveFrame() == Frame(opcode: 1, payload: Array("two".utf8)))
        }
    }

    @Test(
        "when the peer closes, its code is echoed, the connection ends, and the handler is notified (RFC 6455 §7.1.5)")
    func peerCloses() async throws {
        var server = try EchoServer()
        let peer = try RawPeer.upgraded(port: server.port)
        try peer.send(text("last words") + close(3001, "bye") + text("too late"))
        #expect(try peer.receiveFrame().payload == Array("last words".utf8))
        #expect(try peer.receiveFrame() == Frame(opcode: 8, payload: [0x0B, 0xB9]))
        #expect(try peer.receiveToEnd() == [])
        #expect(await server.nextEnding() == ending(WebSocketCloseCode(rawValue: 3001), "bye"))
    }

    @Test("when the server closes, it waits for the peer's close frame and discards earlier input")
    func serverCloses() async throws {
        var server = try EchoServer()
        let peer = try RawPeer.upgraded(port: server.port)
        try peer.send(text("please close") + text("not echoed") + frame(9, [1]))
        #expect(try peer.receiveFrame() == Frame(opcode: 8, payload: [0x03, 0xF0] + Array("as you wish".utf8)))
        try peer.send(close(1008))
        #expect(try peer.receiveToEnd() == [])
        #expect(await server.nextEnding() == ending(.policyViolation))
    }

    @Test("a peer that never answers a close frame is cut off")
    func closeTimeout() async throws {
        var limits = WebSocketLimits()
        limits.closeTimeout = .milliseconds(30)
        var server = try EchoServer(limits: limits)
        let peer = try RawPeer.upgraded(port: server.port)
        try peer.send(text("please close"))
        #expect(try peer.receiveFrame().opcode == 8)
        #expect(try peer.receiveToEnd() == [])
        #expect(await server.nextEnding() == ending(.abnormal, "no close frame was received in time"))
    }

    static let violating: [(bytes: [UInt8], code: UInt16)] = [
        (frame(1, [0x61, 0xFF]), 1007), (frame(1, [0xC3]), 1007), (frame(1, [0xED, 0xA0], fin: false), 1007),
        (frame(2, Array(repeating: 0, count: 2000)), 1009),
        (frame(2, Array(repeating: 0, count: 600), fin: false) + frame(0, Array(repeating: 0, count: 600)), 1009),
        ([0x82, 0xFF, 0, 0, 0, 1, 0, 0, 0, 0], 1009), (frame(1, [0x61], mask: nil), 1002), ([0xF1], 1002),
        (frame(3), 1002), (frame(0), 1002), (frame(9, fin: false), 1002), (frame(8, [1]), 1002),
        (close(1006), 1002), (frame(8, [0x03, 0xE8, 0xFF]), 1007),
    ]

    @Test("violations of the protocol or a limit end the connection with the matching code", arguments: violating)
    func violations(_ bytes: [UInt8], _ code: UInt16) async throws {
        var limits = WebSocketLimits()
        limits.messageBytes = 1000
        var server = try EchoServer(limits: limits)
        let peer = try RawPeer.upgraded(port: server.port)
        try peer.send(text("before") + bytes)
        #expect(try peer.receiveFrame().payload == Array("before".utf8))
        let answer = try peer.receiveFrame()
        #expect(answer.opcode == 8)
        #expect(answer.payload.prefix(2).elementsEqual([UInt8(code >> 8), UInt8(code & 0xFF)]))
        #expect(try peer.receiveToEnd() == [])
        #expect(await server.nextEnding()?.code.rawValue == code)
    }

    @Test("a lost or aborted connection is reported once as 1006", arguments: [true, false])
    func lost(byPeer: Bool) async throws {
        var server = try EchoServer()
        var peer: RawPeer? = try RawPeer.upgraded(port: server.port)
        try peer?.send(byPeer ? Array(text("cut short").dropLast()) : text("please abort"))
        if byPeer { peer?.endWriting() }
        #expect(try peer?.receiveToEnd() == [])
        peer = nil
        #expect(await server.nextEnding()?.code == .abnormal)
        await server.server.shutdown()
        // The next end is that of the next connection: none was reported twice.
        var other = try EchoServer()
        try RawPeer.upgraded(port: other.port).send(close(1000))
        #expect(await other.nextEnding()?.code == .normal)
    }

    @Test("no messages are delivered while reading is paused; afterwards all are, in order")
    func pause() throws {
        let server = try EchoServer()
        let peer = try RawPeer.upgraded(port: server.port)
        try peer.send(text("please pause") + text("a") + text("please pause") + text("b"))
        try peer.send(text("c"))
        for wanted in ["resumed", "a", "resumed", "b", "c"] {
            #expect(try peer.receiveFrame() == Frame(opcode: 1, payload: Array(wanted.utf8)))
        }
    }

    @Test("a peer that does not read its responses costs bounded memory, and loses nothing when it reads")
    func backpressure() async throws {
        let server = try EchoServer()
        let peer = try RawPeer.upgraded(port: server.port, receiveBuffer: 4096)
        // 500 × 64 KiB of responses, more than the sockets hold; requested in one write.
        let count = 500
        try peer.send((0..<count).flatMap { _ in text("64 KiB") } + text("end"))
        let tables = server.server.tables
        func pending() async -> Int {
            var pending = 0
            for table in tables { pending += await table.reactor.perform { table.table.pendingBytes } }
            return pending
        }
        // At the watermark its buffered output is at its maximum.
        #expect(await eventually { await pending() > 256 << 10 })
        for _ in 0..<20 { #expect(await pending() < 2 << 20) }
        #expect(try peer.receiveFrame().payload.count == 65_536)
        for _ in 1..<count { #expect(try peer.receiveFrame().payload.count == 65_536) }
        #expect(try peer.receiveFrame().payload == Array("end".utf8))
    }

    @Test(
        "plain HTTP is answered: 200 from the hook, 426, 405, 404, and request errors",
        arguments: [
            ("GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n", "200 OK", "ok\n"),
            ("HEAD /healthz HTTP/1.0\r\n\r\n", "200 OK", ""),
            ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", "426 Upgrade Required", "this is a WebSocket endpoint, version 13\n"),
            ("POST / HTTP/1.1\r\nHost: h\r\n\r\n", "405 Method Not Allowed", "only GET is supported\n"),
            ("GET / HTTP/1.1\r\n\r\n", "400 Bad Request", "no Host\n"),
            (String(decoding: RawPeer.upgrade("/nowhere"), as: UTF8.self), "404 Not Found", "nothing at /nowhere\n"),
        ])
    func http(_ request: String, _ status: String, _ body: String) throws {
        let server = try EchoServer()
        let peer = try RawPeer(port: server.port)
        try peer.send(Array(request.utf8))
        let head = try peer.receiveHead()
        #expect(head.hasPrefix("HTTP/1.1 \(status)\r\n"))
        #expect(head.contains("\r\nConnection: close\r\n"))
        if status.hasPrefix("426") { #expect(head.contains("\r\nSec-WebSocket-Version: 13\r\n")) }
        #expect(String(decoding: try peer.receiveToEnd(), as: UTF8.self) == body)
    }

    @Test(
        "an endless request is answered 431, read for a short time, then the connection ends", .timeLimit(.minutes(5)))
    func endlessHead() throws {
        let server = try EchoServer()
        let peer = try RawPeer(port: server.port)
        try peer.send(Array("GET / HTTP/1.1\r\nHost: h\r\n".utf8))
        let field = Array("X: \(String(repeating: "x", count: 4000))\r\n".utf8)
        // The sockets hold some MiB; a server that read for 5 s would accept far more than this.
        var sent = 0
        while sent < 256 << 20, (try? peer.send(field)) != nil { sent += field.count }
        #expect(sent >= 16 << 10)
        #expect(sent < 32 << 20)
    }

    @Test("the subprotocol is the server's preferred one among the offers")
    func subprotocol() throws {
        let server = try EchoServer()
        let peer = try RawPeer(port: server.port)
        try peer.send(RawPeer.upgrade("/", "Sec-WebSocket-Protocol: v1, v2\r\n"))
        #expect(try peer.receiveHead().contains("\r\nSec-WebSocket-Protocol: v2\r\n"))
    }

    @Test("a connection that sends no request is answered 408 and ended")
    func handshakeTimeout() throws {
        var limits = WebSocketLimits()
        limits.handshakeTimeout = .milliseconds(30)
        let server = try EchoServer(limits: limits)
        let peer = try RawPeer(port: server.port)
        try peer.send(Array("GET / HT".utf8))
        #expect(try peer.receiveHead().hasPrefix("HTTP/1.1 408 "))
        _ = try peer.receiveToEnd()
    }

    @Test("a connection over the limit is answered 503, and a closed one makes room")
    func connectionLimit() async throws {
        let (stream, continuation) = AsyncStream.makeStream(of: EchoHandler.Ending.self)
        var limits = WebSocketLimits()
        limits.connections = 1
        let server = try WebSocketServer(
            port: 0, reactors: .servers(count: 1), limits: limits,
            accept: { _ in .accept(EchoHandler(endings: continuation)) })
        let first = try RawPeer.upgraded(port: server.address.port)
        let second = try RawPeer(port: server.address.port)
        try second.send(RawPeer.upgrade())
        #expect(try second.receiveHead().hasPrefix("HTTP/1.1 503 "))
        _ = try second.receiveToEnd()
        second.endWriting()
        try first.send(close(1000))
        _ = try first.receiveToEnd()
        var endings = stream.makeAsyncIterator()
        _ = await endings.next()
        first.endWriting()
        while (try? RawPeer.upgraded(port: server.address.port)) == nil { await Task.yield() }
    }

    @Test("shutdown closes every connection with 1001, ends handshakes, and refuses new connections")
    func shutdown() async throws {
        var server = try EchoServer()
        let peers = try (0..<5).map { _ in try RawPeer.upgraded(port: server.port) }
        let halfMade = try RawPeer(port: server.port)
        try halfMade.send(Array("GET / HT".utf8))
        let port = server.port
        let listening = server.server
        // On a reactor: this test blocks its thread of the pool, and others may block the rest.
        let down = Task(executorPreference: try ReactorGroup.clients().reactors[0].tasks) { await listening.shutdown() }
        for peer in peers {
            #expect(try peer.receiveFrame().payload.prefix(2).elementsEqual([0x03, 0xE9]))
            try peer.send(close(1001))
            #expect(try peer.receiveToEnd() == [])
            peer.endWriting()
        }
        _ = try? halfMade.receiveToEnd()
        await down.value
        for _ in peers { #expect(await server.nextEnding()?.code == .goingAway) }
        #expect(throws: (any Error).self) { try RawPeer(port: port) }
    }
}

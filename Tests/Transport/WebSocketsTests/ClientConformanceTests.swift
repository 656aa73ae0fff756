import Networking
import Testing

import Transports
@testable import WebSockets

/// The requirements of RFC 6455 for a client, over a real socket against a hand-written server.
@Suite("RFC 6455: the client", .dedicatedThreads) struct ClientConformanceTests {
    /// Starts to connect. On a reactor: these tests block their threads of the pool.
    private func connect(
        to server: RawServer, subprotocols: [String] = [],
        endings: AsyncStream<EchoHandler.Ending>.Continuation? = nil
    ) throws -> Task<WebSocket, any Error> {
        let url = server.url
        return Task(executorPreference: try ReactorGroup.clients().reactors[0].tasks) {
            try await WebSocketClient.connect(to: url, subprotocols: subprotocols) { _ in
                EchoHandler(endings: endings)
            }
        }
    }

    /// Connects to a server that upgrades and then sends `bytes`.
    private func connected(sending bytes: [UInt8] = []) async throws -> Connected {
        let server = try RawServer()
        let (stream, continuation) = AsyncStream.makeStream(of: EchoHandler.Ending.self)
        let socket = try connect(to: server, endings: continuation)
        let peer = try server.upgrade(bytes)
        return Connected(socket: try await socket.value, peer: peer, endings: stream.makeAsyncIterator())
    }

    private struct Connected {
        let socket: WebSocket
        let peer: RawPeer
        var endings: AsyncStream<EchoHandler.Ending>.Iterator
    }

    @Test("§4.1: the request has every required field, and a fresh key of 16 bytes each time")
    func request() async throws {
        let server = try RawServer()
        var keys: Set<String> = []
        for _ in 0..<3 {
            let socket = try connect(to: server)
            let (peer, request) = try server.accept()
            #expect(request.method == "GET")
            #expect(request.minorVersion == 1)
            #expect(request.target == "/chat?room=1")
            #expect(request.headers.values("Host") == ["127.0.0.1:\(server.port)"])
            #expect(request.headers.list("Upgrade") == ["websocket"])
            #expect(request.headers.list("Connection") == ["Upgrade"])
            #expect(request.headers.values("Sec-WebSocket-Version") == ["13"])
            #expect(request.headers.values("Sec-WebSocket-Protocol") == [])
            let key = request.headers.values("Sec-WebSocket-Key")
            #expect(key.count == 1 && HandshakeKey.isValid(key[0]))
            keys.formUnion(key)
            try peer.send(RawServer.answer(request))
            try await socket.value.abort()
        }
        #expect(keys.count == 3)
    }

    static let badAnswers: [(changes: [String: String?], more: String)] = [
        (["Upgrade": nil], ""), (["Upgrade": "h2c"], ""), (["Connection": nil], ""), (["Connection": "close"], ""),
        (["Sec-WebSocket-Accept": nil], ""), (["Sec-WebSocket-Accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="], ""),
        ([:], "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"),
        ([:], "Sec-WebSocket-Extensions: x-unasked\r\n"), ([:], "Sec-WebSocket-Protocol: unasked\r\n"),
        ([:], "Sec-WebSocket-Protocol: \r\n"),
    ]

    @Test("§4.1: a defective response fails the connection, and nothing is sent on it", arguments: badAnswers)
    func answers(_ changes: [String: String?], _ more: String) async throws {
        let server = try RawServer()
        let socket = try connect(to: server)
        let (peer, request) = try server.accept()
        try peer.send(RawServer.answer(request, changing: changes, more) + frame(1, [0x61], mask: nil))
        #expect(try peer.receiveToEnd() == [])
        let refusal = await #expect(throws: TransportError.self) { try await socket.value }
        #expect(refusal?.code == .handshake)
    }

    @Test(
        "§4.1, §11.3.4: a subprotocol is chosen once, and among the offered ones",
        arguments: [("first", true), ("First", false), ("first\r\nSec-WebSocket-Protocol: first", false)])
    func subprotocols(_ chosen: String, _ isGood: Bool) async throws {
        let server = try RawServer()
        let socket = try connect(to: server, subprotocols: ["first", "second"])
        let (peer, request) = try server.accept()
        #expect(request.headers.values("Sec-WebSocket-Protocol") == ["first, second"])
        try peer.send(RawServer.answer(request, "Sec-WebSocket-Protocol: \(chosen)\r\n"))
        #expect(((try? await socket.value)?.subprotocol == "first") == isGood)
    }

    @Test("§4.1: repeated subprotocols are not offered")
    func repeatedSubprotocols() throws {
        let handshake = ClientHandshake(url: try WebSocketURL("ws://h"), subprotocols: ["a", "b", "a"], headers: [:])
        #expect(throws: TransportError.self) { try handshake.request() }
    }

    @Test(
        "§3: a URL has a host, no fragment, and the schemes ws and wss with their ports",
        arguments: [
            ("ws://h/#f", nil), ("ws://h#", nil), ("ws://", nil), ("ws:///a", nil), ("ftp://h", nil),
            ("h", nil), ("ws://h:0", nil), ("ws://h:65536", nil), ("ws://h:65535", 65_535),
            ("ws://h", 80), ("wss://h", 443), ("WSS://h:1", 1),
        ] as [(String, Int?)])
    func urls(_ text: String, _ port: Int?) { #expect((try? WebSocketURL(text))?.port == port) }

    /// Bytes that a server must not send, and the code that the connection fails with.
    static let violating: [(section: String, bytes: [UInt8], code: UInt16)] = [
        ("§5.1 masked", frame(1, [0x61]), 1002), ("§5.1 masked", frame(9, []), 1002),
        ("§5.2 reserved bits", [0xC1, 0], 1002), ("§5.2 reserved bits", [0x99, 0], 1002),
        ("§5.2 opcode", [0x83, 0], 1002), ("§5.2 opcode", [0x8F, 0], 1002),
        ("§5.2 length not minimal", [0x82, 126, 0, 125], 1002),
        ("§5.2 length not minimal", [0x82, 127, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], 1002),
        ("§5.2 highest bit of the length", [0x82, 127, 0x80, 0, 0, 0, 0, 1, 0, 0], 1002),
        ("§5.4 nothing to continue", frame(0, [], mask: nil), 1002),
        (
            "§5.4 message inside a message",
            frame(1, [0x61], fin: false, mask: nil) + frame(1, [0x61], mask: nil), 1002
        ),
        ("§5.5 fragmented control", frame(9, fin: false, mask: nil), 1002),
        ("§5.5 long control", [0x89, 126, 0, 126], 1002),
        ("§5.5.1 one byte", frame(8, [3], mask: nil), 1002),
        ("§7.4.1 code not for the wire", frame(8, [0x03, 0xED], mask: nil), 1002),
        ("§7.4.2 code out of range", frame(8, [0x03, 0xE7], mask: nil), 1002),
        ("§5.5.1 reason not UTF-8", frame(8, [0x03, 0xE8, 0xFF], mask: nil), 1007),
        ("§8.1 text not UTF-8", frame(1, [0xC0, 0x80], mask: nil), 1007),
        ("§8.1 text cut short", frame(1, [0xE2, 0x82], mask: nil), 1007),
        ("§10.4 over the limit", [0x82, 127, 0, 0, 0, 0, 0x7F, 0, 0, 0], 1009),
    ]

    @Test(
        "§7.1.7: a server that violates the protocol gets a close frame with the reason, and no more is read from it",
        arguments: violating)
    func violations(_ section: String, _ bytes: [UInt8], _ code: UInt16) async throws {
        var connected = try await connected(sending: bytes + frame(1, [0x62], mask: nil))
        let frame = try connected.peer.receiveMasked()
        #expect(frame.opcode == 8, "\(section)")
        #expect(frame.payload.prefix(2).elementsEqual([UInt8(code >> 8), UInt8(code & 0xFF)]), "\(section)")
        #expect(try connected.peer.receiveToEnd() == [], "\(section): the following message is not echoed")
        #expect(await connected.endings.next()?.code.rawValue == code, "\(section)")
    }

    @Test("§5.1, §5.3: every frame of a client is masked, each with a fresh key")
    func masks() async throws {
        let connected = try await connected()
        var keys: Set<[UInt8]> = []
        for number in 0..<100 {
            let payload = [UInt8](repeating: UInt8(number), count: number)
            if number % 2 == 0 { connected.socket.send(binary: payload) } else { connected.socket.ping(payload) }
            let frame = try connected.peer.receiveMasked()
            #expect(frame.payload == payload)
            keys.insert(frame.key)
        }
        #expect(keys.count == 100)
        connected.socket.abort()
    }

    @Test("§5.5.2, §5.5.3: a ping is answered with its payload, also between the fragments of a message")
    func ping() async throws {
        let payload = [UInt8](0..<125)
        let connected = try await connected(
            sending: frame(1, [0x61], fin: false, mask: nil) + frame(9, payload, mask: nil)
                + frame(0, [0x62], mask: nil))
        let pong = try connected.peer.receiveMasked()
        #expect(pong.opcode == 10)
        #expect(pong.payload == payload)
        #expect(try connected.peer.receiveMasked().payload == [0x61, 0x62])
        connected.socket.abort()
    }

    @Test("§5.5.1, §7.1.1: a close frame is answered, and the server ends the connection")
    func serverCloses() async throws {
        var connected = try await connected(sending: frame(8, [0x0F, 0xA1, 0x78], mask: nil) + frame(9, [], mask: nil))
        let answer = try connected.peer.receiveMasked()
        #expect(answer.opcode == 8)
        #expect(answer.payload == [0x0F, 0xA1])
        let ending = EchoHandler.Ending(code: WebSocketCloseCode(rawValue: 4001), reason: "x")
        #expect(await connected.endings.next() == ending)
        // It still waits for the client: the frame is read, and not answered.
        try connected.peer.send(frame(9, [], mask: nil))
        connected.peer.endWriting()
        #expect(try connected.peer.receiveToEnd() == [])
    }

    @Test("§5.5.1, §6.1: no frame follows a close frame, and input before its response is discarded")
    func clientCloses() async throws {
        var connected = try await connected()
        connected.socket.close(code: .normal)
        connected.socket.send(text: "too late")
        connected.socket.ping()
        #expect(try connected.peer.receiveMasked().payload == [0x03, 0xE8])
        try connected.peer.send(
            frame(1, [0x61], mask: nil) + frame(9, [], mask: nil) + frame(8, [0x03, 0xE8], mask: nil))
        connected.peer.endWriting()
        #expect(try connected.peer.receiveToEnd() == [])
        #expect(await connected.endings.next()?.code == .normal)
    }

    @Test("§7.1.5: a connection that ends without a close frame has code 1006, a close frame without code 1005")
    func noCode() async throws {
        var lost = try await connected(sending: [0x81])
        lost.peer.endWriting()
        #expect(await lost.endings.next()?.code == .abnormal)
        var silent = try await connected(sending: frame(8, mask: nil))
        #expect(try silent.peer.receiveMasked().payload == [])
        #expect(await silent.endings.next()?.code == .noStatus)
    }
}

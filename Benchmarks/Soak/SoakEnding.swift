/// The ways in which a connection to a server can end.
enum SoakEnding: String, CaseIterable {
    // Before the upgrade.
    case silentThenGone, halfHead, notHTTP, plainRequest, wrongVersion, resetInHandshake
    // By the client, after the upgrade.
    case closeHandshake, closeWithoutWaiting, endOfStream, reset, resetMidFrame, resetMidMessage
    case resetWithCalls, resetWithStreams, unsubscribeThenClose, resetWithoutReading
    // By the server.
    case unmaskedFrame, reservedBits, textNotUTF8, messageTooBig, compressedBomb, malformedEnvelopes
    /// The server's close frame is not answered.
    case ignoredClose

    private static let upgrade = """
        GET / HTTP/1.1\r\nHost: soak\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
        Sec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Protocol: \(Invocation.subprotocol)\r\n\r\n
        """

    private static let observe = Invocation.text("counter", "observeState", id: "o")
    private static let call = Invocation.text("counter", "increment()")

    /// Runs one connection until its end. Blocks.
    func run(host: String, port: Int) throws {
        let peer = try BlockingPeer(host: host, port: port)
        switch self {
        case .silentThenGone: return peer.close()
        case .halfHead:
            peer.send(Array(Self.upgrade.utf8.prefix(100)))
            return peer.close()
        case .notHTTP:
            peer.send([0x16, 0x03, 0x01, 0x00, 0x0D, 0x0A, 0x0D, 0x0A])
            return peer.receiveToEnd()
        case .plainRequest:
            peer.send(Array("GET /healthz HTTP/1.1\r\nHost: soak\r\n\r\n".utf8))
            return peer.receiveToEnd()
        case .wrongVersion:
            let request = Self.upgrade.split(separator: "Version: 13").joined(separator: "Version: 12")
            peer.send(Array(request.utf8))
            return peer.receiveToEnd()
        case .resetInHandshake:
            peer.send(Array(Self.upgrade.utf8))
            return peer.reset()
        default: break
        }
        peer.send(Array(Self.upgrade.utf8))
        peer.receive()
        end(peer)
    }

    private func end(_ peer: BlockingPeer) {
        switch self {
        case .closeHandshake:
            peer.send(frame: 8, [0x03, 0xE8])
            peer.receiveToEnd()
        case .closeWithoutWaiting:
            peer.send(frame: 8, [0x03, 0xE9])
            peer.close()
        case .endOfStream:
            peer.endWriting()
            peer.receiveToEnd()
        case .resetMidFrame:
            peer.send([0x81, 0xFE, 0x10, 0x00, 0, 0, 0, 0, 0x7B])
            peer.reset()
        case .resetMidMessage:
            peer.send(frame: 1, Array("{".utf8), firstBits: 0)
            peer.reset()
        case .resetWithCalls:
            for _ in 0..<20 { peer.send(text: Self.call) }
            peer.reset()
        case .resetWithStreams:
            peer.send(text: Self.observe)
            peer.receive()
            peer.send(text: Self.call)
            peer.reset()
        case .unsubscribeThenClose:
            peer.send(text: Self.observe)
            peer.send(text: #"{"type":"streamEnd","payload":{"streamID":"s1","reason":"clientUnsubscribed"}}"#)
            peer.send(frame: 8, [0x03, 0xE8])
            peer.receiveToEnd()
        case .resetWithoutReading:
            peer.send(text: Self.observe)
            for _ in 0..<200 { peer.send(text: Self.call) }
            peer.reset()
        case .unmaskedFrame:
            peer.send([0x81, 0x02, 0x7B, 0x7D])
            peer.receive()
            peer.close()
        case .reservedBits:
            peer.send(frame: 1, Array("{}".utf8), firstBits: 0xA0)
            peer.receive()
            peer.close()
        case .textNotUTF8:
            peer.send(frame: 1, [0x7B, 0xC0, 0x7D])
            peer.receive()
            peer.close()
        case .messageTooBig:
            peer.send([0x81, 0xFF, 0, 0, 0, 0, 0x7F, 0, 0, 0, 0, 0, 0, 0])
            peer.receive()
            peer.close()
        case .compressedBomb:
            peer.send(frame: 2, Self.bomb, firstBits: 0xC0)
            peer.receive()
            peer.close()
        case .malformedEnvelopes:
            for _ in 0..<10 { peer.send(text: "{") }
            peer.receive()
            peer.close()
        case .ignoredClose:
            peer.send([0x81, 0x02, 0x7B, 0x7D])
            peer.receiveToEnd()
        default: peer.reset()
        }
    }

    /// 2 MiB of zeros, compressed as DEFLATE does with fixed codes: one zero, then repeats of length 258 (RFC 1951 §3.2.6).
    private static let bomb: [UInt8] = {
        var bits: [UInt8] = []
        func put(_ value: Int, _ count: Int) {
            for bit in (0..<count).reversed() { bits.append(UInt8(value >> bit & 1)) }
        }
        bits += [0, 1, 0]  // not the last block, fixed codes
        put(0b0011_0000, 8)  // a zero byte
        for _ in 0..<8200 {
            put(0b1100_0101, 8)  // length 258
            put(0, 5)  // distance 1
        }
        put(0, 7)  // the end of the block
        bits += [0, 0, 0]  // an empty block that is not compressed; its length is cut off
        while bits.count % 8 != 0 { bits.append(0) }
        return stride(from: 0, to: bits.count, by: 8).map { at in
            (0..<8).reduce(0) { $0 | bits[at + $1] << UInt8($1) }
        }
    }()
}

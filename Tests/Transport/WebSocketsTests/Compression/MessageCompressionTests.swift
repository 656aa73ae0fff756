import Bytes
import Platform
import Testing

@testable import WebSockets

/// Compression and decompression, without a socket.
@Suite struct MessageCompressionTests {
    private func pair(
        keeping: Bool = false, bits: Int = 15, threshold: Int = 1, level: Int = 1
    ) -> (server: MessageCompression, client: MessageCompression) {
        var settings = WebSocketCompression()
        settings.threshold = threshold
        settings.level = level
        var agreement = NegotiatedCompression()
        agreement.serverNoContextTakeover = !keeping
        agreement.clientNoContextTakeover = !keeping
        agreement.serverMaxWindowBits = bits
        agreement.clientMaxWindowBits = bits
        return (
            MessageCompression(agreement, role: .server, settings: settings, codecs: CompressionCodecs()),
            MessageCompression(agreement, role: .client, settings: settings, codecs: CompressionCodecs())
        )
    }

    private func deflated(_ bytes: [UInt8], by sender: MessageCompression) -> [UInt8]? {
        var buffer = ByteBuffer()
        buffer.append([1, 2, 3])
        buffer.append(bytes)
        guard sender.deflate(&buffer, from: 3) else { return nil }
        return Array(buffer.bytes.dropFirst(3))
    }

    private enum Inflated: Equatable {
        case bytes([UInt8])
        case violation(ProtocolViolation, afterBytes: Int)
    }

    private func inflated(
        _ bytes: [UInt8], by receiver: MessageCompression, limit: Int = 1 << 20
    ) -> Inflated {
        var buffer = ByteBuffer()
        let violation = bytes.withUnsafeBytes {
            receiver.inflate($0, limit: limit, into: &buffer) { _ in nil }
        }
        if let violation { return .violation(violation, afterBytes: buffer.count) }
        return .bytes(Array(buffer.bytes))
    }

    @Test("the compressed bytes do not depend on the initial buffer size", arguments: [1, 2, 6, 7, 400, 4_000])
    func room(expected: Int) {
        let bytes = Self.sample(9_000)
        func deflated(_ expected: Int?) -> [UInt8] {
            var buffer = ByteBuffer()
            let deflater = Deflater(level: 1, windowBits: 15)
            for _ in 0..<2 {
                bytes.withUnsafeBytes {
                    deflater.deflate($0, resetting: false, into: &buffer, expected: expected)
                }
            }
            return Array(buffer.bytes)
        }
        #expect(deflated(expected) == deflated(nil))
    }

    private static func sample(_ count: Int, seed: UInt64 = 7) -> [UInt8] {
        var random = RandomSource(seed: seed)
        return (0..<count).map { _ in UInt8.random(in: 0...15, using: &random) }
    }

    @Test(
        "messages survive a round trip, whatever the window, with and without context takeover",
        arguments: [9, 12, 15], [false, true])
    func roundTrip(bits: Int, keeping: Bool) throws {
        let (server, client) = pair(keeping: keeping, bits: bits, level: 6)
        for (number, count) in [1, 5, 100, 70_000, 16_384, 300_000, 3].enumerated() {
            let message = Self.sample(count, seed: UInt64(number / 2))
            for (sender, receiver) in [(server, client), (client, server)] {
                // A message that would grow is sent uncompressed, when the context is not retained.
                guard let compressed = deflated(message, by: sender) else {
                    #expect(!keeping && count < 10)
                    continue
                }
                #expect(inflated(compressed, by: receiver) == .bytes(message))
            }
        }
    }

    @Test("with context takeover a repeated message has a few bytes")
    func takeover() throws {
        let (server, client) = pair(keeping: true)
        let message = Self.sample(1000)
        let first = try #require(deflated(message, by: server))
        let second = try #require(deflated(message, by: server))
        #expect(second.count < 20)
        #expect(inflated(first, by: client) == .bytes(message))
        #expect(inflated(second, by: client) == .bytes(message))
    }

    @Test("messages below the threshold, or that would grow, stay uncompressed")
    func untouched() {
        let (server, _) = pair(threshold: 100)
        #expect(deflated([UInt8](repeating: 1, count: 99), by: server) == nil)
        #expect(deflated([UInt8](repeating: 1, count: 100), by: server) != nil)
        var random = RandomSource(seed: 3)
        #expect(deflated((0..<200).map { _ in UInt8.random(in: 0...255, using: &random) }, by: server) == nil)
    }

    @Test("a peer's window of 256 bytes, which zlib does not support, disables compression")
    func tinyWindow() {
        let (server, _) = pair(bits: 8)
        #expect(deflated(Self.sample(1000), by: server) == nil)
        #expect(server.deflatedOnce([UInt8](repeating: 1, count: 9).withUnsafeBytes { SharedBytes($0) }) == nil)
    }

    @Test("each side uses the negotiated window and context for its own messages")
    func negotiatedWindows() {
        var agreement = NegotiatedCompression()
        agreement.serverMaxWindowBits = 8
        agreement.clientNoContextTakeover = true
        var settings = WebSocketCompression()
        settings.threshold = 1
        let (server, client) = (
            MessageCompression(agreement, role: .server, settings: settings, codecs: CompressionCodecs()),
            MessageCompression(agreement, role: .client, settings: settings, codecs: CompressionCodecs())
        )
        #expect(deflated(Self.sample(1000), by: server) == nil)
        let first = deflated(Self.sample(1000), by: client)
        #expect(first != nil && deflated(Self.sample(1000), by: client) == first)
        agreement.serverMaxWindowBits = 15
        let keeping = MessageCompression(agreement, role: .server, settings: settings, codecs: CompressionCodecs())
        #expect(deflated(Self.sample(1000), by: keeping) == first)
        #expect(deflated(Self.sample(1000), by: keeping)?.count ?? .max < 30)
    }

    /// The examples of RFC 7692 §7.2.3, all of "Hello".
    @Test(
        "the RFC's examples are decompressed",
        arguments: [
            [[0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]],
            [[0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00], [0xF2, 0x00, 0x11, 0x00, 0x00]],
            [[0x00, 0x05, 0x00, 0xFA, 0xFF, 0x48, 0x65, 0x6C, 0x6C, 0x6F, 0x00]],
            [[0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00], [0xF2, 0x00, 0x11, 0x00, 0x00]],
            [[0xF2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xCA, 0xC9, 0xC9, 0x07, 0x00]],
        ] as [[[UInt8]]])
    func examples(_ messages: [[UInt8]]) {
        let (server, _) = pair(keeping: true)
        for message in messages { #expect(inflated(message, by: server) == .bytes(Array("Hello".utf8))) }
    }

    @Test("the RFC's empty message is decompressed")
    func empty() { #expect(inflated([0], by: pair().server) == .bytes([])) }

    @Test(
        "incomplete DEFLATE data is rejected",
        arguments: [
            [], [0xF2], [0xF2, 0x48, 0xCD], [0xFF, 0xFF, 0xFF], [0x06, 0x07], [0x00, 0x05, 0x00, 0x00, 0x00, 1],
            [0xF2, 0x00, 0x11, 0x00, 0x00],
        ] as [[UInt8]])
    func garbage(_ bytes: [UInt8]) {
        guard case .violation(.badCompression, _) = inflated(bytes, by: pair().server) else {
            Issue.record("\(bytes) is accepted as DEFLATE data")
            return
        }
    }

    @Test("a small message that expands beyond the limit is stopped there, and the next one is read")
    func bomb() throws {
        let (server, client) = pair(level: 9)
        let bomb = try #require(deflated([UInt8](repeating: 0, count: 16 << 20), by: server))
        #expect(bomb.count < 20_000)
        #expect(inflated(bomb, by: client, limit: 1 << 20) == .violation(.messageTooBig, afterBytes: 1 << 20 + 1))
        let atLimit = try #require(deflated([UInt8](repeating: 0, count: 5000), by: server))
        #expect(inflated(atLimit, by: client, limit: 5000) == .bytes([UInt8](repeating: 0, count: 5000)))
        #expect(inflated(atLimit, by: client, limit: 4999) == .violation(.messageTooBig, afterBytes: 5000))
    }

    @Test("shared bytes are compressed once for all connections with the same window")
    func once() throws {
        let (server, client) = pair()
        let (other, _) = pair()
        let (narrow, _) = pair(bits: 10)
        let message = Self.sample(5000)
        let shared = message.withUnsafeBytes { SharedBytes($0) }
        let first = try #require(server.deflatedOnce(shared))
        #expect(other.deflatedOnce(shared) === first)
        #expect(narrow.deflatedOnce(shared) !== first)
        #expect(inflated(Array(first.bytes), by: client) == .bytes(message))
        #expect(pair(keeping: true).server.deflatedOnce(shared) == nil, "context takeover needs a separate compression")
    }

    @Test("a stored block may precede the compressed ones")
    func stored() throws {
        let (server, client) = pair()
        let message = Self.sample(5000)
        let shared = message.withUnsafeBytes { SharedBytes($0) }
        let compressed = try #require(server.deflatedOnce(shared))
        let head = Array("head".utf8)
        var whole = [UInt8](repeating: 0, count: MessageCompression.storedHead)
        whole.withUnsafeMutableBytes { MessageCompression.putStoredHead(count: 4, at: $0.baseAddress!) }
        whole += head + Array(compressed.bytes)
        #expect(inflated(whole, by: client) == .bytes(head + message))
    }

    @Test("random bytes neither crash nor exceed the limit", arguments: 0..<20)
    func noise(_ seed: Int) throws {
        var random = RandomSource(seed: UInt64(seed))
        let (server, client) = pair(keeping: seed % 2 == 0)
        let message = Self.sample(3000)
        for _ in 0..<100 {
            var bytes = try #require(deflated(message, by: server))
            for _ in 0...Int.random(in: 0..<4, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            switch inflated(bytes, by: client, limit: 10_000) {
            case .bytes(let result): #expect(result.count <= 10_000)
            case .violation(_, let count): #expect(count <= 10_001)
            }
        }
    }
}

import Bytes
import Testing

@testable import WebSockets

@Suite("MessageReader (RFC 6455 §5.4, §5.5, §8.1)")
struct MessageReaderTests {
    enum ReadEvent: Equatable {
        case message(WebSocketOpcode, [UInt8])
        case control(WebSocketOpcode, [UInt8])
        case violation(ProtocolViolation)
    }

    private func read(
        _ pieces: [[UInt8]], role: WebSocketRole = .server, limits: WebSocketLimits = WebSocketLimits()
    ) -> [ReadEvent] {
        var reader = MessageReader(role: role, limits: limits)
        var seen: [ReadEvent] = []
        for var piece in pieces {
            let isBroken = piece.withUnsafeMutableBytes { bytes in
                var rest = bytes
                while true {
                    switch reader.next(&rest) {
                    case .needsMore:
                        #expect(rest.isEmpty)
                        return false
                    case .complete:
                        guard case .message(let opcode, let payload)? = reader.takeMessage(atMost: nil) else {
                            Issue.record("no message")
                            return true
                        }
                        seen.append(.message(opcode, Array(payload)))
                    case .message(let opcode, let payload): seen.append(.message(opcode, Array(payload)))
                    case .control(let opcode, let payload): seen.append(.control(opcode, Array(payload)))
                    case .violation(let violation):
                        seen.append(.violation(violation))
                        return true
                    }
                }
            }
            if isBroken { break }
        }
        return seen
    }

    @Test("an unfinished message is old from its second beat on, and each message starts over")
    func beats() {
        var reader = MessageReader(role: .server, limits: WebSocketLimits())
        func read(_ piece: [UInt8]) {
            var piece = piece
            piece.withUnsafeMutableBytes { bytes in
                var rest = bytes
                while case .message = reader.next(&rest) {}
            }
        }
        let message = text("Hello")
        for _ in 0..<2 {
            read(Array(message[..<4]))
            var seen = [reader.isOlderThanLastBeat(), reader.isOlderThanLastBeat()]
            read(Array(message[4...]))
            seen.append(reader.isOlderThanLastBeat())
            #expect(seen == [false, true, false])
        }
    }

    @Test("complete messages after a split one are delivered in place")
    func inPlaceBehindPieces() {
        var reader = MessageReader(role: .server, limits: WebSocketLimits())
        let payload = [UInt8](repeating: 0x61, count: 5_000)
        /// For each message in a piece, whether it lies in the piece.
        func read(_ piece: [UInt8]) -> [Bool] {
            var piece = piece
            return piece.withUnsafeMutableBytes { bytes in
                var (rest, seen) = (bytes, [Bool]())
                let end = bytes.baseAddress! + bytes.count
                while true {
                    switch reader.next(&rest) {
                    case .message(_, let message):
                        #expect(message.elementsEqual(payload))
                        seen.append((bytes.baseAddress!..<end).contains(message.baseAddress!))
                    case .control, .complete: break
                    case .needsMore: return seen
                    case .violation(let violation):
                        Issue.record("\(violation)")
                        return seen
                    }
                }
            }
        }
        let one = frame(1, payload)
        for cut in [1, 5, 10, 4_000] {
            #expect(read(Array(one[..<cut])) == [])
            #expect(read(one[cut...] + one + frame(9, [1]) + one + one[..<3]) == [false, true, true], "cut at \(cut)")
            #expect(read(Array(one[3...])) == [false])
        }
    }

    private func message(_ string: String) -> ReadEvent { .message(.text, Array(string.utf8)) }

    /// Messages of every length class, fragments, and control frames between them.
    private var conversation: [UInt8] {
        text("Hello") + frame(2, [UInt8](repeating: 0x80, count: 130)) + text("") + frame(9, [1, 2, 3])
            + text("hé", fin: false) + frame(10) + frame(0, [], fin: false) + frame(9, [9])
            + frame(0, Array("llo 🚀".utf8))
            + frame(2, [0xFF], fin: false) + frame(0, [0xFE]) + frame(8, [0x03, 0xE8])
    }

    private var meaning: [ReadEvent] {
        [
            message("Hello"), .message(.binary, [UInt8](repeating: 0x80, count: 130)), message(""),
            .control(.ping, [1, 2, 3]), .control(.pong, []), .control(.ping, [9]), message("héllo 🚀"),
            .message(.binary, [0xFF, 0xFE]), .control(.close, [0x03, 0xE8]),
        ]
    }

    @Test("a conversation is parsed alike however the network splits it")
    func cuts() {
        #expect(read([conversation]) == meaning)
        #expect(read(conversation.map { [$0] }) == meaning)
        for cut in 0...conversation.count {
            #expect(read([Array(conversation[..<cut]), Array(conversation[cut...])]) == meaning, "cut at \(cut)")
        }
        for size in [2, 3, 5, 7, 13, 50] {
            let pieces = stride(from: 0, to: conversation.count, by: size).map {
                Array(conversation[$0..<min($0 + size, conversation.count)])
            }
            #expect(read(pieces) == meaning, "pieces of \(size)")
        }
    }

    @Test("a client reads unmasked frames, ASCII or not")
    func clientRole() {
        let bytes = frame(1, Array("plain é".utf8), mask: nil) + frame(1, [0xC0], mask: nil)
        #expect(read([bytes], role: .client) == [message("plain é"), .violation(.invalidUTF8)])
        #expect(read(bytes.map { [$0] }, role: .client) == [message("plain é"), .violation(.invalidUTF8)])
    }

    @Test("a message of 70,000 bytes is read from pieces of any size", arguments: [1000, 1447, 65_536])
    func large(_ size: Int) {
        let payload = (0..<70_000).map { UInt8(truncatingIfNeeded: $0 &* 7) & 0x7F }
        let bytes = frame(1, payload)
        let pieces = stride(from: 0, to: bytes.count, by: size).map { Array(bytes[$0..<min($0 + size, bytes.count)]) }
        #expect(read(pieces) == [.message(.text, payload)])
    }

    static let disorder: [([UInt8], ProtocolViolation)] = [
        (frame(0, [1]), .continuationOfNothing),
        (frame(0, [1], fin: false), .continuationOfNothing),
        (text("a", fin: false) + text("b"), .messageInsideMessage),
        (text("a", fin: false) + frame(2, [1]), .messageInsideMessage),
        (text("a") + frame(0, []), .continuationOfNothing),
        (frame(1, [0xC3], fin: true), .invalidUTF8),
        (frame(1, [0xC3], fin: false) + frame(0, [0x41]), .invalidUTF8),
        (frame(1, [0xE2, 0x82], fin: false) + frame(0, []), .invalidUTF8),
    ]

    @Test("frames out of order and truncated texts are violations, however they are split", arguments: disorder)
    func violations(_ bytes: [UInt8], _ violation: ProtocolViolation) {
        #expect(read([bytes]).last == .violation(violation))
        #expect(read(bytes.map { [$0] }).last == .violation(violation))
    }

    @Test("invalid UTF-8 is found at its first byte, before the frame or the message ends")
    func failsFast() {
        let bad = frame(1, Array("abc".utf8) + [0xFF] + [UInt8](repeating: 0x61, count: 1000), fin: false)
        #expect(read([Array(bad[..<12])]) == [.violation(.invalidUTF8)])
        #expect(read([Array(bad[..<11])]) == [])
    }

    @Test("messages over the limits of bytes and of fragments are violations")
    func limits() {
        var limits = WebSocketLimits()
        limits.messageBytes = 10
        limits.fragmentsPerMessage = 3
        let five = [UInt8](repeating: 1, count: 5)
        let two = frame(2, five, fin: false) + frame(0, five)
        #expect(read([two], limits: limits) == [.message(.binary, five + five)])
        #expect(read([frame(2, five + five + [1])], limits: limits) == [.violation(.frameTooBig)])
        let over = frame(2, five, fin: false) + frame(0, five, fin: false) + frame(0, [1])
        #expect(read([over], limits: limits) == [.violation(.messageTooBig)])
        let many = frame(2, [], fin: false) + frame(0, [], fin: false) + frame(0, [], fin: false) + frame(0, [])
        #expect(read([many], limits: limits) == [.violation(.tooManyFragments)])
        #expect(read([two + two + two], limits: limits).count == 3)
    }

    @Test("a compressed message is decompressed up to a limit, or left as it is, and then as a whole")
    func compressed() throws {
        func deflated(_ bytes: [UInt8]) -> [UInt8] {
            var buffer = ByteBuffer()
            bytes.withUnsafeBytes {
                Deflater(level: 1, windowBits: 15).deflate($0, resetting: true, into: &buffer)
            }
            return Array(buffer.bytes)
        }
        func compressedFrame(_ bytes: [UInt8]) -> [UInt8] {
            var bytes = frame(1, deflated(bytes))
            bytes[0] |= 0x40
            return bytes
        }
        let (short, long) = ([UInt8](repeating: 0x61, count: 1_000), [UInt8](repeating: 0x62, count: 100_000))
        for keeps in [false, true] {
            var agreement = NegotiatedCompression()
            agreement.clientNoContextTakeover = !keeps
            let compression = MessageCompression(
                agreement, role: .server, settings: WebSocketCompression(), codecs: CompressionCodecs())
            var reader = MessageReader(role: .server, limits: WebSocketLimits(), compression: compression)
            var bytes = [short, long].flatMap(compressedFrame) + text("plain")
            bytes.withUnsafeMutableBytes { all in
                var rest = all
                func next() -> MessageReader.Event { reader.next(&rest) }
                func isComplete(_ event: MessageReader.Event) -> Bool {
                    if case .complete = event { true } else { false }
                }
                func payload(_ event: MessageReader.Event?) -> [UInt8]? {
                    if case .message(.text, let payload)? = event { Array(payload) } else { nil }
                }
                #expect(!reader.hasCompleteMessage && isComplete(next()) && reader.hasCompleteMessage)
                // A decompressor with a context cannot begin again.
                #expect(payload(reader.takeMessage(atMost: 16 << 10)) == (keeps ? nil : short))
                if keeps { #expect(payload(reader.takeMessage(atMost: nil)) == short) }
                #expect(isComplete(next()) && isComplete(next()))
                #expect(reader.takeMessage(atMost: 64 << 10) == nil && reader.hasCompleteMessage)
                #expect(payload(reader.takeMessage(atMost: nil)) == long)
                #expect(payload(next()) == Array("plain".utf8))
            }
        }
    }

    @Test("a message of more than 16 KiB is delivered when it is taken, and the next one after it")
    func large() {
        for count in [16 << 10, (16 << 10) + 1] {
            for isSplit in [false, true] {
                var reader = MessageReader(role: .server, limits: WebSocketLimits())
                let content = [UInt8](repeating: 0x61, count: count)
                var bytes = frame(1, content) + text("next")
                func payload(_ event: MessageReader.Event?) -> [UInt8]? {
                    if case .message(.text, let payload)? = event { Array(payload) } else { nil }
                }
                bytes.withUnsafeMutableBytes { all in
                    var rest = all
                    if isSplit {
                        rest = UnsafeMutableRawBufferPointer(rebasing: all[..<70])
                        guard case .needsMore = reader.next(&rest) else { return #expect(Bool(false)) }
                        rest = UnsafeMutableRawBufferPointer(rebasing: all[70...])
                    }
                    if count > 16 << 10 {
                        for _ in 0..<2 {
                            guard case .complete = reader.next(&rest) else { return #expect(Bool(false)) }
                        }
                        let isLeft = reader.takeMessage(atMost: 16 << 10) == nil && reader.hasCompleteMessage
                        #expect(isLeft)
                        #expect(payload(reader.takeMessage(atMost: nil)) == content)
                    } else {
                        #expect(payload(reader.next(&rest)) == content)
                    }
                    let isWaiting = reader.hasCompleteMessage
                    #expect(!isWaiting)
                    #expect(payload(reader.next(&rest)) == Array("next".utf8))
                }
            }
        }
    }

    @Test("payloads of complete frames lie in the given bytes: nothing is copied")
    func inPlace() {
        var bytes = text("in place") + text("again")
        bytes.withUnsafeMutableBytes { all in
            var reader = MessageReader(role: .server, limits: WebSocketLimits())
            var rest = all
            for (offset, length) in [(6, 8), (20, 5)] {
                guard case .message(.text, let payload) = reader.next(&rest) else {
                    Issue.record("no message")
                    return
                }
                #expect(payload.baseAddress == all.baseAddress! + offset)
                #expect(payload.count == length)
            }
        }
    }
}

import Bytes
import Testing
import TrebuchetWire

@Suite("Writing envelopes")
struct WriterTests {
    struct Golden: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let write: @Sendable (inout ByteBuffer) -> Void
        let text: String

        init(_ name: String, _ text: String, _ write: @escaping @Sendable (inout ByteBuffer) -> Void) {
            testDescription = name
            self.text = text
            self.write = write
        }
    }

    private static func response(_ result: String?, _ buffer: inout ByteBuffer) {
        let bytes = result.map { Array($0.utf8) }
        Array("a1".utf8).withUnsafeBytes { callID in
            if let bytes {
                bytes.withUnsafeBytes { EnvelopeWriter.response(callID: callID, result: $0, into: &buffer) }
            } else {
                EnvelopeWriter.response(callID: callID, result: nil, into: &buffer)
            }
        }
    }

    private static func failure(data: String?, _ buffer: inout ByteBuffer) {
        Array("a1".utf8).withUnsafeBytes {
            EnvelopeWriter.failure(
                callID: $0, code: .application, message: "no \"milk\"", type: data.map { _ in "Bank.Closed" },
                data: data.map { Array($0.utf8) }, into: &buffer)
        }
    }

    private static func start(_ buffer: inout ByteBuffer) {
        Array("a2".utf8).withUnsafeBytes {
            EnvelopeWriter.streamStart(
                streamID: Array("s9".utf8), callID: $0, actorID: "lists/1", target: "observeState", epoch: "4f1c",
                into: &buffer)
        }
    }

    static let golden = [
        Golden("a result", #"{"type":"response","payload":{"callID":"a1","result":{"id":1}}}"#) {
            response(#"{"id":1}"#, &$0)
        },
        Golden("no result", #"{"type":"response","payload":{"callID":"a1"}}"#) { response(nil, &$0) },
        Golden(
            "a failure",
            #"{"type":"response","payload":{"callID":"a1","error":{"code":"application","message":"no \"milk\""}}}"#
        ) { failure(data: nil, &$0) },
        Golden(
            "a typed failure",
            #"{"type":"response","payload":{"callID":"a1","error":{"code":"application","message":"no \"milk\"","type":"Bank.Closed","data":[1]}}}"#
        ) { failure(data: "[1]", &$0) },
        Golden(
            "a failure that tells when to try again",
            #"{"type":"response","payload":{"callID":"a1","error":{"code":"rateLimited","message":"too many","retryAfterMilliseconds":250}}}"#
        ) { buffer in
            Array("a1".utf8).withUnsafeBytes {
                EnvelopeWriter.failure(
                    callID: $0, code: .rateLimited, message: "too many", retryAfterMilliseconds: 250,
                    into: &buffer)
            }
        },
        Golden(
            "an error that tells when to try again",
            #"{"type":"error","payload":{"code":"rateLimited","message":"too many","retryAfterMilliseconds":250}}"#
        ) { EnvelopeWriter.error(code: .rateLimited, message: "too many", retryAfterMilliseconds: 250, into: &$0) },
        Golden(
            "a stream's error that tells when to try again",
            #"{"type":"streamError","payload":{"streamID":"s9","errorMessage":"too many","code":"rateLimited","retryAfterMilliseconds":250}}"#
        ) {
            EnvelopeWriter.streamError(
                streamID: Array("s9".utf8), message: "too many", code: .rateLimited, retryAfterMilliseconds: 250,
                into: &$0)
        },
        Golden(
            "the start of a stream",
            #"{"type":"streamStart","payload":{"streamID":"s9","callID":"a2","actorID":"lists/1","targetIdentifier":"observeState","epoch":"4f1c"}}"#
        ) { start(&$0) },
        Golden(
            "a stream's error",
            #"{"type":"streamError","payload":{"streamID":"s9","errorMessage":"gone","code":"actorNotFound"}}"#
        ) {
            EnvelopeWriter.streamError(
                streamID: Array("s9".utf8), message: "gone", code: .actorNotFound, into: &$0)
        },
        Golden("a stream's end", #"{"type":"streamEnd","payload":{"streamID":"s9","reason":"serverDraining"}}"#) {
            EnvelopeWriter.streamEnd(
                streamID: Array("s9".utf8), reason: .serverDraining, into: &$0)
        },
        Golden("an error", #"{"type":"error","payload":{"code":"malformedEnvelope","message":"what?\n"}}"#) {
            EnvelopeWriter.error(code: .malformedEnvelope, message: "what?\n", into: &$0)
        },
        Golden(
            "a farewell", #"{"type":"goAway","payload":{"reason":"draining","reconnectAfterMilliseconds":1500}}"#
        ) { EnvelopeWriter.goAway(reason: "draining", reconnectAfterMilliseconds: 1500, into: &$0) },
        Golden(
            "a call",
            #"{"type":"invocation","payload":{"callID":"a1","actorID":"todos","targetIdentifier":"add(title:)","arguments":["Milk",1],"genericSubstitutions":["Swift.Int"],"timeoutMilliseconds":250}}"#
        ) {
            EnvelopeWriter.invocation(
                callID: "a1", actorID: "todos", target: "add(title:)",
                arguments: [Array(#""Milk""#.utf8), Array("1".utf8)], genericSubstitutions: ["Swift.Int"],
                timeoutMilliseconds: 250, into: &$0)
        },
        Golden(
            "the call of a stream",
            #"{"type":"invocation","payload":{"callID":"a2","actorID":"todos","targetIdentifier":"observeState"}}"#
        ) {
            EnvelopeWriter.invocation(
                callID: "a2", actorID: "todos", target: "observeState", arguments: nil, into: &$0)
        },
        Golden("a cancellation", #"{"type":"cancel","payload":{"callID":"a1"}}"#) {
            EnvelopeWriter.cancel(callID: "a1", into: &$0)
        },
    ]

    @Test("each kind has the text specified by the protocol, and can be read back", arguments: golden)
    func goldenText(_ golden: Golden) throws {
        var buffer = ByteBuffer()
        golden.write(&buffer)
        #expect(String(decoding: buffer.bytes, as: UTF8.self) == golden.text)
        var envelope = ScannedEnvelope()
        try envelope.scan(buffer.bytes)
    }

    @Test("an update consists of one head per subscriber and a shared tail")
    func streamData() throws {
        var buffer = ByteBuffer()
        StreamDataEncoding.appendPrefix(into: &buffer)
        #expect(buffer.count == StreamDataEncoding.prefixCount)
        buffer.append(utf8: "s9")
        Array(#"{"n":7}"#.utf8).withUnsafeBytes {
            StreamDataEncoding.appendSuffix(sequence: 42, data: $0, into: &buffer)
        }
        var envelope = ScannedEnvelope()
        try envelope.scan(buffer.bytes)
        #expect(envelope.kind == .streamData)
        #expect(envelope.sequenceNumber == 42)
        #expect(envelope.string(envelope.streamID, in: buffer.bytes) == "s9")
        let data = String(decoding: envelope.data.bytes(in: buffer.bytes), as: UTF8.self)
        #expect(data == #"{"n":7}"#)
        let timestamp = envelope.string(envelope.timestamp, in: buffer.bytes)
        #expect(ISO8601.seconds(timestamp) != nil)
        #expect(timestamp.contains("."))
    }

    @Test(
        "dates are written in UTC and read with a fraction or an offset",
        arguments: [
            (0, "1970-01-01T00:00:00Z"), (951_782_400, "2000-02-29T00:00:00Z"), (-1, "1969-12-31T23:59:59Z"),
            (4_102_444_799, "2099-12-31T23:59:59Z"), (-62_135_596_800, "0001-01-01T00:00:00Z"),
        ])
    func dates(seconds: Int64, text: String) {
        var buffer = ByteBuffer()
        ISO8601.append(seconds: seconds, milliseconds: nil, to: &buffer)
        #expect(String(decoding: buffer.bytes, as: UTF8.self) == text)
        #expect(ISO8601.seconds(text) == Double(seconds))
        #expect(ISO8601.seconds(text.dropLast() + ".250+01:00") == Double(seconds) - 3600 + 0.25)
    }

    @Test(
        "an invalid date is refused",
        arguments: [
            "", "2026-02-30T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z",
            "2026-01-01 00:00:00Z", "2026-01-01T00:00:00", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00Zx",
            "2026-01-01T00:00:00.2:Z", "2026-01-01T00:00:00+01:60", "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:61Z",
            "2026-01-01T00:00:00 01:00", "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-32T00:00:00Z",
        ])
    func badDates(_ text: String) { #expect(ISO8601.seconds(text) == nil) }
}

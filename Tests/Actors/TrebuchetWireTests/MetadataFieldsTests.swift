import Bytes
import Platform
import Testing

@testable import TrebuchetWire

/// Valid and malformed metadata of calls and stream starts.
@Suite struct MetadataFieldsTests {
    private static let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    private func message(_ metadata: String, type: String = "invocation") -> [UInt8] {
        let resumed = type == "streamResume" ? #""streamID":"s1","epoch":"e","lastSequence":1,"# : ""
        return Array(
            #"{"type":"\#(type)","payload":{\#(resumed)"callID":"1","actorID":"a","targetIdentifier":"b","metadata":\#(metadata)}}"#
                .utf8)
    }

    /// The fields of a message; nil for a malformed one.
    private func fields(_ metadata: String, type: String = "invocation") -> [String: String]? {
        var envelope = ScannedEnvelope()
        return message(metadata, type: type).withUnsafeBytes { bytes in
            guard (try? envelope.scan(bytes)) != nil else { return nil }
            return envelope.metadata.isAbsent ? [:] : MetadataFields.fields(in: envelope.metadata.bytes(in: bytes))
        }
    }

    @Test(
        "fields of calls, repeats, streams and resumptions are read",
        arguments: ["invocation", "repeat", "streamResume"])
    func read(type: String) {
        #expect(
            fields(#"{"request-id":"7f","a":"\u00e9\n\"","b2-":"é😀"}"#, type: type) == [
                "request-id": "7f", "a": "é\n\"", "b2-": "é😀",
            ])
        #expect(fields(" { \"a\" : \"1\" , \"b\" : \"\" } ", type: type) == ["a": "1", "b": ""])
        #expect(fields("{}", type: type) == [:])
        #expect(fields("null", type: type) == [:])
    }

    @Test(
        "metadata that is not an object of strings with valid names makes the message malformed",
        arguments: [
            "1", "true", #""a""#, "[]", #"["a","b"]"#, #"{"a":1}"#, #"{"a":null}"#, #"{"a":{}}"#, #"{"a":["b"]}"#,
            #"{"a":"1","a":"2"}"#, #"{"a":"1","b":"2","a":"1"}"#, #"{"\u0061":"1"}"#, #"{"a":"1","\u0061":"2"}"#,
            #"{"":"1"}"#, #"{"A":"1"}"#, #"{"a_b":"1"}"#, #"{"a b":"1"}"#, #"{"é":"1"}"#, #"{"a.b":"1"}"#,
            #"{"a":"1",}"#, #"{"a"}"#, #"{a:"1"}"#, #"{"a":"1""#, #"{"a":"\x"}"#, "{\"a\":\"\u{1}\"}",
            #"{"a":"\ud800"}"#,
        ])
    func malformed(metadata: String) {
        #expect(fields(metadata) == nil)
        #expect(fields(metadata, type: "streamResume") == nil)
    }

    @Test("the limits are 16 fields, 64 characters of a name and 4,096 bytes")
    func limits() {
        func object(_ count: Int) -> String {
            "{" + (0..<count).map { #""f\#($0)":"\#($0)""# }.joined(separator: ",") + "}"
        }
        #expect(fields(object(16))?.count == 16)
        #expect(fields(object(17)) == nil)
        #expect(fields(object(10_000)) == nil)
        let name = String(repeating: "n", count: 64)
        #expect(fields(#"{"\#(name)":"1"}"#) == [name: "1"])
        #expect(fields(#"{"\#(name)n":"1"}"#) == nil)
        // The quotes, the braces, the colon and the name take 8 bytes.
        let value = String(repeating: "v", count: 4_088)
        #expect(fields(#"{"a":"\#(value)"}"#) == ["a": value])
        #expect(fields(#"{"a":"\#(value)v"}"#) == nil)
        #expect(fields(#"{"a":"\#(value)" }"#) == nil)
        #expect(fields(#"{"a":"\#(String(repeating: "v", count: 100_000))"}"#) == nil)
        #expect(fields(#"{"a":"\#(String(repeating: #"\u0061"#, count: 700))"}"#) == nil)
    }

    @Test("a malformed call with a readable callID is answered")
    func answered() {
        var envelope = ScannedEnvelope()
        let error = #expect(throws: EnvelopeError.self) {
            try message(#"{"A":"1"}"#).withUnsafeBytes { try envelope.scan($0) }
        }
        // The callID precedes the metadata.
        #expect(error?.callID == "1")
        #expect(error?.message.contains("name of metadata") == true)
    }

    private func call(_ metadata: [UInt8]?, isRepeat: Bool = false) -> [UInt8] {
        var buffer = ByteBuffer()
        EnvelopeWriter.invocation(
            callID: "1", actorID: "a", target: "b", arguments: [Array("1".utf8)], timeoutMilliseconds: 5, session: "s",
            traceparent: Self.traceparent, metadata: metadata, isRepeat: isRepeat, into: &buffer)
        return Array(buffer.bytes)
    }

    @Test("written fields are read again, and a message without metadata has no member for it")
    func written() throws {
        let given = ["a": "\u{0}\u{1F}\"\\é😀\u{2028}", "request-id": "7", "z": ""]
        for isRepeat in [false, true] {
            var envelope = ScannedEnvelope()
            let bytes = call(MetadataFields.object(given), isRepeat: isRepeat)
            try bytes.withUnsafeBytes { bytes in
                try envelope.scan(bytes)
                #expect(MetadataFields.fields(in: envelope.metadata.bytes(in: bytes)) == given)
            }
        }
        let plain = String(decoding: call(nil), as: UTF8.self)
        #expect(!plain.contains("metadata"))
        #expect(
            String(decoding: call(MetadataFields.object(["a": "1"])), as: UTF8.self)
                == plain.dropLast(2) + #","metadata":{"a":"1"}}}"#)
    }

    @Test("messages with changed metadata are malformed or within the limits")
    func changed() {
        let bytes = Array("\"\\,:{}[]0a-A \n\u{1}ué".utf8) + [0, 0x7F, 0x80, 0xC3, 0xFF]
        let original = #"{"request-id":"7f","a":"\u00e9\n","b":"é"}"#
        var read = 0
        for seed in UInt64(0)..<5_000 {
            var random = RandomSource(seed: seed)
            var text = Array(original.utf8)
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let place = Int.random(in: 0..<text.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: text.insert(bytes.randomElement(using: &random)!, at: place)
                case 1: text.remove(at: place)
                default: text[place] = bytes.randomElement(using: &random)!
                }
            }
            let message =
                Array(
                    #"{"type":"invocation","payload":{"callID":"1","actorID":"a","targetIdentifier":"b","metadata":"#
                        .utf8)
                + text + Array("}}".utf8)
            var envelope = ScannedEnvelope()
            message.withUnsafeBytes { message in
                guard (try? envelope.scan(message)) != nil, !envelope.metadata.isAbsent else { return }
                let fields = MetadataFields.fields(in: envelope.metadata.bytes(in: message))
                #expect(
                    fields.count <= MetadataFields.maximumCount
                        && fields.keys.allSatisfy { MetadataFields.isName($0.utf8) }, "seed \(seed)")
                read += 1
            }
        }
        // Some changes must be harmless: otherwise this would test refusals only.
        #expect(read > 100)
    }
}

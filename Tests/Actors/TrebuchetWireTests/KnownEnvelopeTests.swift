import Bytes
import Platform
import Testing

@testable import TrebuchetWire

/// Messages recognized by their exact text are parsed like any other notation of them.
@Suite struct KnownEnvelopeTests {
    private func call(
        _ id: String, _ actor: String, _ target: String, _ arguments: [String]?, timeout: Int? = nil,
        generics: [String] = [], session: String? = nil, traceparent: String? = nil,
        isRepeat: Bool = false
    ) -> [UInt8] {
        var buffer = ByteBuffer()
        EnvelopeWriter.invocation(
            callID: id, actorID: actor, target: target, arguments: arguments?.map { Array($0.utf8) },
            genericSubstitutions: generics, timeoutMilliseconds: timeout, session: session,
            traceparent: traceparent, isRepeat: isRepeat, into: &buffer)
        return Array(buffer.bytes)
    }

    private func answer(_ id: String, _ result: String?) -> [UInt8] {
        var buffer = ByteBuffer()
        Array(id.utf8).withUnsafeBytes { id in
            guard let result else { return EnvelopeWriter.response(callID: id, result: nil, into: &buffer) }
            Array(result.utf8).withUnsafeBytes { EnvelopeWriter.response(callID: id, result: $0, into: &buffer) }
        }
        return Array(buffer.bytes)
    }

    private static let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    private func tracedAnswer(_ result: String?) -> [UInt8] {
        var buffer = ByteBuffer()
        Array("1".utf8).withUnsafeBytes { id in
            Array((result ?? "").utf8).withUnsafeBytes {
                EnvelopeWriter.response(
                    callID: id, result: result == nil ? nil : $0, traceparent: Self.traceparent, into: &buffer)
            }
        }
        return Array(buffer.bytes)
    }

    private var known: [[UInt8]] {
        [
            call("1", "counter", "add(_:)", ["3"]), call("17", "a", "b", [], timeout: 30_000),
            call("12345678", "späti", "add(_:to:)", [#"{"a":[1,2.5e3,null],"b":"x\n"}"#, "true", #""t""#], timeout: 0),
            answer("1", "5"), answer("abc", nil), answer("9", #"{"a":[{},[]],"b":"\u00e4"}"#), answer("2", "-0.5e-3"),
        ]
    }

    private var others: [[UInt8]] {
        [
            call("1", "counter", "observeState", nil), call("1", "list", "add", ["1"], generics: ["Si"]),
            call("1", "list", "add", ["1"], session: "n1"),
            call("1", "list", "add", ["1"], session: "n1", isRepeat: true),
            call("1", "list", "add", ["1"], timeout: 5, traceparent: Self.traceparent), tracedAnswer("5"),
            tracedAnswer(nil),
            call("1", #"a"b"#, "add", ["1"]), call("", "a", "add", ["1"]), call("1", "", "add", ["1"]),
            call(String(repeating: "1", count: 65), "a", "b", []),
            call("1", "a", "b", Array(repeating: "1", count: 33)),
            Array(
                #"{"type":"invocation","payload":{"callID":"1","actorID":"a","targetIdentifier":"b","arguments":null}}"#
                    .utf8),
            Array(#"{"payload":{"callID":"1"},"type":"response"}"#.utf8), [],
        ]
    }

    /// The result of a message, with all scanned members.
    private func outcome(_ message: [UInt8], _ scan: (inout ScannedEnvelope, UnsafeRawBufferPointer) throws -> Void)
        -> String
    {
        var envelope = ScannedEnvelope()
        do {
            try message.withUnsafeBytes { try scan(&envelope, $0) }
        } catch {
            return "\(error)"
        }
        return "\(envelope)"
    }

    private func isKnown(_ message: [UInt8]) -> Bool {
        var envelope = ScannedEnvelope()
        return message.withUnsafeBytes { envelope.scanKnown($0) }
    }

    private func expectSame(_ message: [UInt8], _ seed: UInt64? = nil) {
        let (ours, general) = (outcome(message) { try $0.scan($1) }, outcome(message) { try $0.scanAny($1) })
        #expect(ours == general, "\(String(decoding: message, as: UTF8.self)), seed \(String(describing: seed))")
    }

    @Test("messages of Trebuchet's encoder are recognized, and have the same parts")
    func written() {
        for message in known {
            #expect(isKnown(message), "\(String(decoding: message, as: UTF8.self))")
            expectSame(message)
        }
    }

    @Test("other messages are scanned")
    func other() {
        for message in others {
            #expect(!isKnown(message), "\(String(decoding: message, as: UTF8.self))")
            expectSame(message)
        }
    }

    @Test("messages truncated at any position are parsed like others")
    func cutOff() {
        for message in known + others {
            for count in 0..<message.count { expectSame(Array(message[..<count])) }
        }
    }

    @Test("messages with bytes inserted, removed or changed are parsed like others")
    func changed() {
        let bytes = Array(#"""#.utf8) + Array("\\,:{}[]0123456789e.- \n\t\u{1}ab".utf8) + [0, 0x7F, 0x80, 0xC3, 0xFF]
        var taken = 0
        for seed in UInt64(0)..<3_000 {
            var random = RandomSource(seed: seed)
            var message = known.randomElement(using: &random)!
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let place = Int.random(in: 0..<message.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: message.insert(bytes.randomElement(using: &random)!, at: place)
                case 1: message.remove(at: place)
                default: message[place] = bytes.randomElement(using: &random)!
                }
            }
            expectSame(message, seed)
            if isKnown(message) { taken += 1 }
        }
        // Some changes must be harmless: otherwise this would not test recognized messages.
        #expect(taken > 15)
    }

    // MARK: Traces

    private func scanned(_ text: [UInt8]) throws -> ScannedEnvelope {
        var envelope = ScannedEnvelope()
        try text.withUnsafeBytes { try envelope.scan($0) }
        return envelope
    }

    @Test("a call and its response name their trace, beside all other members")
    func traced() throws {
        for message in [
            call("1", "list", "add", ["1"], timeout: 5, traceparent: Self.traceparent),
            call("1", "list", "add", ["1"], session: "n1", traceparent: Self.traceparent, isRepeat: true),
            tracedAnswer("5"), tracedAnswer(nil),
        ] {
            let envelope = try scanned(message)
            let found = message.withUnsafeBytes { envelope.string(envelope.traceparent, in: $0) }
            #expect(found == Self.traceparent && !envelope.traceparent.isEscaped)
            // A parser without the member reads the same message: a member of another name is ignored.
            let older = Array(
                String(decoding: message, as: UTF8.self).replacing("traceparent", with: "tracepavent").utf8)
            var same = try scanned(older)
            #expect(same.traceparent.isAbsent)
            same.traceparent = envelope.traceparent
            #expect("\(same)" == "\(envelope)")
        }
        let failure = {
            var buffer = ByteBuffer()
            Array("1".utf8).withUnsafeBytes {
                EnvelopeWriter.failure(
                    callID: $0, code: .timeout, message: "m", data: [0x35], traceparent: Self.traceparent, into: &buffer
                )
            }
            return Array(buffer.bytes)
        }()
        let envelope = try scanned(failure)
        #expect(envelope.hasError && envelope.traceparent.count == 55)
    }

    @Test("a traceparent that is not a text is ignored", arguments: ["null", "0", "[1]", #"{"a":"b"}"#, "false"])
    func noText(value: String) throws {
        let text = #"{"type":"invocation","payload":{"callID":"1","actorID":"a","targetIdentifier":"b","traceparent":"#
        #expect(try scanned(Array("\(text)\(value)}}".utf8)).traceparent.isAbsent)
    }
}

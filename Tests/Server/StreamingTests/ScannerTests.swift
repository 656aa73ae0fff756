import Foundation
import Testing
import TrebuchetWire

@Suite("Scanning envelopes")
struct ScannerTests {
    static let valid = [
        #"{"type":"invocation","payload":{"callID":"a1","actorID":"todos","targetIdentifier":"add(title:)","arguments":["Milk",1.5e3]}}"#,
        #" { "payload" : { "actorID":{"port":1,"id":"e","host":"h"}, "c\u0061llID":"a" ,"targetIdentifier":"x","protocolVersion":2} , "type":"invocation" } "#,
        #"{"type":"cancel","payload":{"callID":"a1"}}"#,
        #"{"type":"response","payload":{"callID":"a1","result":{"id":-0,"t":"\ud83d\ude00"}}}"#,
        #"{"type":"response","payload":{"callID":"a1","errorMessage":"Actor not found"}}"#,
        #"{"type":"streamData","payload":{"streamID":"s9","sequenceNumber":18446744073709551615,"data":null}}"#,
        #"{"type":"streamEnd","payload":{"streamID":"s9","reason":"completed"}}"#,
        #"{"type":"streamResume","payload":{"streamID":"6C","lastSequence":7,"actorID":{"id":"c"},"targetIdentifier":"observeState"}}"#,
        #"{"type":"goAway","payload":{"reason":"draining","reconnectAfterMilliseconds":1500}}"#,
        #"{"type":"response","payload":{"callID":"1","error":{"code":"rateLimited","message":"","retryAfterMilliseconds":9}}}"#,
        #"{"type":"response","payload":{"callID":"1","error":{"code":"rateLimited","retryAfterMilliseconds":null}}}"#,
        #"{"type":"error","payload":{"code":"rateLimited","message":"","retryAfterMilliseconds":9}}"#,
    ]

    /// The error of a message, or nil.
    private func problem(_ text: [UInt8]) -> String? {
        var envelope = ScannedEnvelope()
        do {
            try text.withUnsafeBytes { try envelope.scan($0) }
            return nil
        } catch { return (error as? EnvelopeError)?.message }
    }

    @Test("an absent member of a message is an empty text")
    func absent() {
        #expect(Array("{}".utf8).withUnsafeBytes { ScannedEnvelope().string(.absent, in: $0) } == "")
    }

    @Test("each kind of message is scanned, and its prefixes are refused", arguments: valid)
    func prefixes(_ text: String) {
        let bytes = Array(text.utf8)
        #expect(problem(bytes) == nil)
        let end = bytes.lastIndex(of: 0x7D) ?? 0
        for count in 0..<end { #expect(problem(Array(bytes.prefix(count))) != nil) }
    }

    @Test(
        "invalid JSON is refused",
        arguments: [
            "1.", ".5", "1e", "01", "-", "+1", "tru", "\"\\x\"", "\"\\u12G4\"", "\"\\ud800\"", "\"\\udc00\"",
            "\"\u{1}\"", "[1,]", "{\"a\"}", "{\"a\":1,}", "",
        ])
    func badValues(_ value: String) {
        let text = #"{"type":"response","payload":{"callID":"a","result":"# + value + "}}"
        #expect(problem(Array(text.utf8)) != nil)
    }

    @Test(
        "the error describes the problem",
        arguments: [
            (#"{"payload":{}}"#, "the message has no 'type'"),
            (#"{"type":"cancel"}"#, "the message has no 'payload'"),
            (#"{"type":"cancel","payload":{}}"#, "cancel: missing callID"),
            (#"{"type":"huh","payload":{}}"#, "unknown type 'huh'"),
            (#"{"type":"cancel","payload":{"callID":"a","callID":"a"}}"#, "duplicate member 'callID'"),
            (
                #"{"type":"cancel","payload":{"callID":"é"}}"#,
                "cancel: callID must be 1 to 64 printable ASCII characters"
            ),
            (#"{"type":"invocation","payload":{"callID":"a","actorID":"b"}}"#, "invocation: missing targetIdentifier"),
        ])
    func messages(_ text: String, _ message: String) {
        #expect(problem(Array(text.utf8)) == message)
    }

    @Test(
        "optional members may be null",
        arguments: [
            #"{"type":"invocation","payload":{"callID":"a","actorID":"b","targetIdentifier":"c","arguments":null,"genericSubstitutions":null,"timeoutMilliseconds":null,"filter":null,"protocolVersion":null}}"#,
            #"{"type":"goAway","payload":{"reason":null,"reconnectAfterMilliseconds":null}}"#,
        ])
    func nulls(_ text: String) { #expect(problem(Array(text.utf8)) == nil) }

    @Test(
        "only an invalid invocation has a call that can be answered",
        arguments: [
            (#"{"type":"invocation","payload":{"callID":"a1","actorID":"b"}}"#, "a1"),
            (
                #"{"type":"invocation","payload":{"callID":"a1","actorID":"b","targetIdentifier":"c","arguments":[1"#,
                "a1"
            ),
            (#"{"type":"invocation","payload":{"callID":"é","actorID":"b"}}"#, nil),
            (#"{"type":"cancel","payload":{"callID":"a1","callID":"a1"}}"#, nil),
            (#"{"type":"streamResume","payload":{"streamID":"s","callID":"a1"}}"#, nil),
        ])
    func answeredCall(_ text: String, callID: String?) {
        var envelope = ScannedEnvelope()
        let error = #expect(throws: EnvelopeError.self) {
            try Array(text.utf8).withUnsafeBytes { try envelope.scan($0) }
        }
        #expect(error?.callID == callID)
    }

    @Test(
        "members of the wrong type are refused in each kind",
        arguments: [
            #"{"type":"cancel","payload":{"callID":1}}"#,
            #"{"type":"invocation","payload":{"callID":"a","actorID":7,"targetIdentifier":"c"}}"#,
            #"{"type":"invocation","payload":{"callID":"a","actorID":{"host":"h"},"targetIdentifier":"c"}}"#,
            #"{"type":"invocation","payload":{"callID":"a","actorID":"","targetIdentifier":"c"}}"#,
            #"{"type":"invocation","payload":{"callID":"a","actorID":"b","targetIdentifier":"c","arguments":{}}}"#,
            #"{"type":"invocation","payload":{"callID":"a","actorID":"b","targetIdentifier":"c","timeoutMilliseconds":-1}}"#,
            #"{"type":"invocation","payload":{"callID":"a","actorID":"b","targetIdentifier":"c","genericSubstitutions":[1]}}"#,
            #"{"type":"streamData","payload":{"streamID":"s","data":1}}"#,
            #"{"type":"streamData","payload":{"streamID":"s","sequenceNumber":1}}"#,
            #"{"type":"streamData","payload":{"streamID":"s","sequenceNumber":1,"data":1,"patch":[]}}"#,
            #"{"type":"streamData","payload":{"streamID":"s","sequenceNumber":1.5,"data":1}}"#,
            #"{"type":"streamStart","payload":{"streamID":"s"}}"#,
            #"{"type":"streamEnd","payload":{}}"#,
            #"{"type":"streamError","payload":{"errorMessage":"x"}}"#,
            #"{"type":"streamResume","payload":{"streamID":"s","actorID":"b"}}"#,
            #"{"type":"response","payload":{"result":1}}"#,
            #"{"type":"response","payload":{"callID":"a","error":"x"}}"#,
            #"{"type":"goAway","payload":{"reconnectAfterMilliseconds":"1"}}"#,
            #"{"type":"error","payload":{"retryAfterMilliseconds":"1"}}"#,
            #"{"type":"response","payload":{"callID":"1","error":{"retryAfterMilliseconds":"1"}}}"#,
            #"{"type":"error","payload":[]}"#,
        ])
    func wrongTypes(_ text: String) { #expect(problem(Array(text.utf8)) != nil) }

    @Test("nesting, arguments and the end have their limits")
    func limits() {
        func response(_ value: String) -> [UInt8] {
            Array((#"{"type":"response","payload":{"callID":"a","result":"# + value + "}}").utf8)
        }
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(problem(response(nested(62))) == nil)
        #expect(problem(response(nested(63)))?.hasPrefix("values nest deeper than 64") == true)
        #expect(problem(response(nested(100_000))) != nil)
        #expect(problem(response("1") + [0])?.hasPrefix("text after the end") == true)
        func call(_ count: Int) -> [UInt8] {
            let list = Array(repeating: "1", count: count).joined(separator: ",")
            let head =
                #"{"type":"invocation","payload":{"callID":"a","actorID":"b","targetIdentifier":"c","arguments":["#
            return Array((head + list + "]}}").utf8)
        }
        #expect(problem(call(32)) == nil)
        #expect(problem(call(33)) == "more than 32 arguments")
    }

    @Test("mutated messages never crash, and the scanner refuses those refused by JSONSerialization")
    func fuzz() {
        var seed: UInt64 = 42
        func random(_ limit: Int) -> Int {
            seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(seed >> 33) % limit
        }
        let marks = Array(#"{}[],:"\0e.-u 9n"#.utf8)
        for _ in 0..<20_000 {
            var bytes = Array(Self.valid[random(Self.valid.count)].utf8)
            for _ in 0...random(3) {
                let at = random(bytes.count)
                switch random(3) {
                case 0: bytes[at] = marks[random(marks.count)]
                case 1: bytes.insert(marks[random(marks.count)], at: at)
                default: bytes.remove(at: at)
                }
            }
            // A number may be larger than any Double (RFC 8259 §6), which JSONSerialization does not accept.
            let isBeyondDouble = String(decoding: bytes, as: UTF8.self).contains(/e[0-9]{3}/)
            guard problem(bytes) == nil, !isBeyondDouble else { continue }
            let isJSON = (try? JSONSerialization.jsonObject(with: Data(bytes))) != nil
            #expect(isJSON, "\(String(decoding: bytes, as: UTF8.self))")
        }
    }
}

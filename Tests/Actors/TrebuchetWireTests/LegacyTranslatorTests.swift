import Bytes
import Foundation
import Testing
import TrebuchetWire

/// Messages of versions 1 and 2 beside the equivalent ones of version 3.
@Suite("Translation for clients of versions 1 and 2") struct LegacyTranslatorTests {
    private static let identity = "11D59619-1377-46DB-84C2-B614274F81AF"
    private static let stream = "11D59619-1377-46DB-84C2-"

    private func incoming(_ text: String, _ translator: inout LegacyTranslator) throws -> String {
        var buffer = ByteBuffer()
        try Array(text.utf8).withUnsafeBytes { message in
            try translator.incoming(message, into: &buffer) { actor, mangled, count in
                count == 1 && actor == "ec\"ho" && mangled == "$s9PeerBench4EchoC4echoyS2SYaKFTE" ? "echo(_:)" : nil
            }
        }
        return String(decoding: buffer.bytes, as: UTF8.self)
    }

    private func incoming(_ text: String) throws -> String {
        var translator = LegacyTranslator(identity: Self.identity)
        return try incoming(text, &translator)
    }

    private func outgoing(_ text: String, _ translator: inout LegacyTranslator) -> [String] {
        Array(text.utf8).withUnsafeBytes { translator.outgoing($0) }.map { String(decoding: $0, as: UTF8.self) }
    }

    private func outgoing(_ text: String) -> [String] {
        var translator = LegacyTranslator(identity: Self.identity)
        return outgoing(text, &translator)
    }

    private static func invocation(_ members: String) -> String {
        #"{"type":"invocation","payload":{"callID":"F98A","actorID":\#(members)}}"#
    }

    private static func base64(_ json: String) -> String { "\"\(Data(json.utf8).base64EncodedString())\"" }

    // MARK: From the client

    @Test(
        "a client's messages are translated",
        arguments: [
            (
                invocation(
                    #"{"id":"echo","host":"127.0.0.1","port":8080},"targetIdentifier":"$s9PeerBench4EchoC4echoyS2SYaKFTE","#
                        + #""protocolVersion":2,"genericSubstitutions":[],"arguments":["ImhpIg=="]"#),
                invocation(#""echo","targetIdentifier":"$s9PeerBench4EchoC4echoyS2SYaKFTE","arguments":["hi"]"#)
            ),
            (
                invocation(
                    #"{"id":"ec\"ho"},"targetIdentifier":"$s9PeerBench4EchoC4echoyS2SYaKFTE","arguments":["ImhpIg=="]"#),
                invocation(#""ec\"ho","targetIdentifier":"echo(_:)","arguments":["hi"]"#)
            ),
            // Version 1, and arguments of all kinds, with white space and Foundation's escapes.
            (
                invocation(
                    #"{"port":1,"id":"a\/\u00e9"},"targetIdentifier":"f(_:)","arguments":["#
                        + [" [1, 2] ", "null", "1e300", #"{"a":"\"b"}"#].map(base64).joined(separator: ",")
                        + #","Ij8/Pz8\/Ig=="],"genericSubstitutions":["Swift.Int"],"timeoutMilliseconds":250"#),
                invocation(
                    #""a\/\u00e9","targetIdentifier":"f(_:)","arguments":[ [1, 2] ,null,1e300,{"a":"\"b"},"?????"],"#
                        + #""genericSubstitutions":["Swift.Int"],"timeoutMilliseconds":250"#)
            ),
            // Members of version 3 alone are dropped.
            (
                invocation(#""echo","targetIdentifier":"f()","session":"x.y.z","filter":{"distinct":true}"#),
                invocation(#""echo","targetIdentifier":"f()","arguments":[]"#)
            ),
            (
                invocation(
                    #"{"id":"c"},"targetIdentifier":"observeState","streamFilter":{"type":"predefined","name":"changed"}"#
                ),
                invocation(#""c","targetIdentifier":"observeState","arguments":[],"filter":{"distinct":true}"#)
            ),
            (
                invocation(
                    #"{"id":"c"},"targetIdentifier":"observeState","streamFilter":{"type":"predefined","name":"threshold","#
                        + #""parameters":{"field":"a/b","value":"10","comparison":"<="}}"#),
                invocation(
                    #""c","targetIdentifier":"observeState","arguments":[],"#
                        + #""filter":{"where":{"path":"/a~1b","op":"le","value":10.0,"numbersAlone":true}}"#)
            ),
            (
                invocation(#"{"id":"c"},"targetIdentifier":"observeState","streamFilter":{"type":"all"}"#),
                invocation(#""c","targetIdentifier":"observeState","arguments":[],"filter":{}"#)
            ),
            (
                invocation(#"{"id":"c"},"targetIdentifier":"observeState""#),
                invocation(#""c","targetIdentifier":"observeState","arguments":[],"filter":{}"#)
            ),
            (
                #"{"type":"streamResume","payload":{"streamID":"6CDD","lastSequence":7,"actorID":{"id":"counter","host":"h","#
                    + #""port":1},"targetIdentifier":"observeState","callID":"x"}}"#,
                #"{"type":"streamResume","payload":{"streamID":"6CDD","actorID":"counter","targetIdentifier":"observeState","#
                    + #""lastSequence":7,"filter":{}}}"#
            ),
            (#"{"type":"cancel","payload":{"callID":"F98A"}}"#, #"{"type":"cancel","payload":{"callID":"F98A"}}"#),
            (
                #"{"type":"streamEnd","payload":{"streamID":"\#(stream)00000000001F","reason":"clientUnsubscribed"}}"#,
                #"{"type":"streamEnd","payload":{"streamID":"s31"}}"#
            ),
        ])
    func fromClient(old: String, new: String) throws {
        #expect(try incoming(old) == new)
        // It is a message.
        var envelope = ScannedEnvelope()
        try Array(new.utf8).withUnsafeBytes { try envelope.scan($0) }
    }

    @Test(
        "a malformed message is rejected by the server, and a value cannot end the message that contains it",
        arguments: [
            ("{", nil, "expected"), (#"{"type":"hello","payload":{}}"#, nil, "does not send hello messages"),
            (#"{"type":"goAway","payload":{}}"#, nil, "does not send goAway messages"),
            (#"{"type":"response","payload":{"callID":"1"}}"#, nil, "does not send response messages"),
            (
                #"{"type":"repeat","payload":{"callID":"1","actorID":"a","targetIdentifier":"f()"}}"#, nil,
                "does not send repeat messages"
            ),
            (
                invocation(#"{"id":"a"},"targetIdentifier":"f()","arguments":[7]"#), "F98A",
                "argument 1: it is not a string"
            ),
            (
                invocation(#"{"id":"a"},"targetIdentifier":"f()","arguments":["e"]"#), "F98A",
                "argument 1: it is not base64"
            ),
            (
                invocation(#"{"id":"a"},"targetIdentifier":"f()","arguments":["MQ==",""]"#), "F98A",
                "argument 2: the value is missing"
            ),
            (
                invocation(#"{"id":"a"},"targetIdentifier":"f()","arguments":[\#(base64(#"1],"session":["x"#))]"#),
                "F98A",
                "argument 1: text after the end"
            ),
            (
                invocation(
                    #"{"id":"a"},"targetIdentifier":"f()","arguments":["#
                        + base64(String(repeating: "[", count: 62) + String(repeating: "]", count: 62)) + "]"),
                "F98A", "argument 1: values nest deeper than 64"
            ),
            (invocation(#"{"id":"a"},"targetIdentifier":"observeState","streamFilter":[]"#), "F98A", "'streamFilter'"),
        ] as [(String, String?, String)])
    func nonsense(text: String, callID: String?, error: String) {
        #expect {
            _ = try incoming(text)
        } throws: {
            ($0 as? EnvelopeError)?.callID == callID && ($0 as? EnvelopeError)?.message.contains(error) == true
        }
    }

    // MARK: To the client

    @Test(
        "a server's messages are translated",
        arguments: [
            (
                #"{"type":"response","payload":{"callID":"a1","result":"hi"}}"#,
                [#"{"type":"response","payload":{"callID":"a1","result":"ImhpIg=="}}"#]
            ),
            (
                #"{"type":"response","payload":{"callID":"a1"}}"#,
                [#"{"type":"response","payload":{"callID":"a1","result":""}}"#]
            ),
            (
                #"{"type":"response","payload":{"callID":"a1","error":{"code":"application","message":"no \"milk\"","type":"Bank.Closed","data":[1]}}}"#,
                [#"{"type":"response","payload":{"callID":"a1","errorMessage":"no \"milk\""}}"#]
            ),
            (
                #"{"type":"streamStart","payload":{"streamID":"s9","callID":"a2","actorID":"lists/1","targetIdentifier":"observeState","epoch":"4f1c","sequenceNumber":3}}"#,
                [
                    #"{"type":"streamStart","payload":{"streamID":"\#(stream)000000000009","callID":"a2","actorID":{"id":"lists/1"},"targetIdentifier":"observeState"}}"#
                ]
            ),
            // A resumed stream under the name that its client gave it.
            (
                #"{"type":"streamStart","payload":{"streamID":"6CDD","callID":"6CDD","actorID":"c","targetIdentifier":"observeState","epoch":"4f1c"}}"#,
                [
                    #"{"type":"streamStart","payload":{"streamID":"6CDD","callID":"6CDD","actorID":{"id":"c"},"targetIdentifier":"observeState"}}"#
                ]
            ),
            (
                #"{"type":"streamData","payload":{"streamID":"s4294967295","sequenceNumber":42,"timestamp":"2026-01-01T00:00:00.987Z","data":{"n":7}}}"#,
                [
                    #"{"type":"streamData","payload":{"streamID":"\#(stream)0000FFFFFFFF","sequenceNumber":42,"data":"eyJuIjo3fQ==","timestamp":"2026-01-01T00:00:00Z"}}"#
                ]
            ),
            (
                #"{"type":"streamEnd","payload":{"streamID":"s9","reason":"serverDraining"}}"#,
                [#"{"type":"streamEnd","payload":{"streamID":"\#(stream)000000000009","reason":"connectionClosed"}}"#]
            ),
            (
                #"{"type":"streamEnd","payload":{"streamID":"s9","reason":"actorTerminated"}}"#,
                [#"{"type":"streamEnd","payload":{"streamID":"\#(stream)000000000009","reason":"actorTerminated"}}"#]
            ),
            (
                #"{"type":"streamError","payload":{"streamID":"s9","errorMessage":"gone","code":"actorNotFound","retryAfterMilliseconds":5}}"#,
                [#"{"type":"streamError","payload":{"streamID":"\#(stream)000000000009","errorMessage":"gone"}}"#]
            ),
            (
                #"{"type":"error","payload":{"code":"malformedEnvelope","message":"what?\n"}}"#,
                [
                    #"{"type":"response","payload":{"callID":"00000000-0000-0000-0000-000000000000","errorMessage":"what?\n"}}"#
                ]
            ),
            (#"{"type":"goAway","payload":{"reason":"draining","reconnectAfterMilliseconds":1500}}"#, []),
            (#"{"type":"hello","payload":{"protocolVersion":3,"session":"a","limits":{}}}"#, []),
        ])
    func toClient(new: String, old: [String]) {
        #expect(outgoing(new) == old)
    }

    @Test("a rejected stream starts and ends; a later call with the same callID is a call")
    func refusedStream() throws {
        var translator = LegacyTranslator(identity: Self.identity)
        let refusal =
            #"{"type":"response","payload":{"callID":"F98A","error":{"code":"actorNotFound","message":"no \"c\""}}}"#
        for number in 1...2 {
            _ = try incoming(Self.invocation(#"{"id":"c"},"targetIdentifier":"observeState""#), &translator)
            let streamID = "\(Self.stream)80000000000\(number)"
            #expect(
                outgoing(refusal, &translator) == [
                    #"{"type":"streamStart","payload":{"streamID":"\#(streamID)","callID":"F98A","actorID":{"id":"c"},"targetIdentifier":"observeState"}}"#,
                    #"{"type":"streamError","payload":{"streamID":"\#(streamID)","errorMessage":"no \"c\""}}"#,
                ])
            #expect(UUID(uuidString: streamID) != nil)
        }
        let failure = [#"{"type":"response","payload":{"callID":"F98A","errorMessage":"no \"c\""}}"#]
        #expect(outgoing(refusal, &translator) == failure)
        // A started stream gets a response, and so does one with a rejected filter.
        _ = try incoming(Self.invocation(#"{"id":"c"},"targetIdentifier":"observeState""#), &translator)
        _ = outgoing(
            #"{"type":"streamStart","payload":{"streamID":"s1","callID":"F98A","actorID":"c","targetIdentifier":"observeState"}}"#,
            &translator)
        #expect(outgoing(refusal, &translator) == failure)
        #expect(throws: EnvelopeError.self) {
            try incoming(
                Self.invocation(#"{"id":"c"},"targetIdentifier":"observeState","streamFilter":1"#), &translator)
        }
        #expect(outgoing(refusal, &translator).count == 2)
        // The name of a method has labels.
        _ = try incoming(Self.invocation(#"{"id":"c"},"targetIdentifier":"observe(_:)""#), &translator)
        #expect(outgoing(refusal, &translator) == failure)
    }

    @Test(
        "a value in two parts, of which one is made for all clients, is what the whole message would be",
        arguments: [#"{"a":[1,"\u00e9"]}"#, "null", "\"\"", "1", #""ab""#])
    func sharedValues(json: String) {
        var suffix = ByteBuffer()
        Array(json.utf8).withUnsafeBytes { StreamDataEncoding.appendSuffix(sequence: 17, data: $0, into: &suffix) }
        var head = ByteBuffer()
        StreamDataEncoding.appendPrefix(into: &head)
        head.append(Array("s26".utf8))
        var form = ByteBuffer()
        LegacyTranslator.appendSuffix(ofStreamData: suffix.bytes, into: &form)
        let translator = LegacyTranslator(identity: Self.identity)
        let parts = translator.streamDataHead(head.bytes) + Array(form.bytes)
        let whole = String(decoding: Array(head.bytes) + Array(suffix.bytes), as: UTF8.self)
        #expect([String(decoding: parts, as: UTF8.self)] == outgoing(whole))
    }

    @Test("a value that is nested too deep, and a patch, have no form for all clients")
    func noSharedValues() {
        func form(_ write: (inout ByteBuffer) -> Void) -> Int {
            var suffix = ByteBuffer()
            var form = ByteBuffer()
            write(&suffix)
            LegacyTranslator.appendSuffix(ofStreamData: suffix.bytes, into: &form)
            return form.count
        }
        let deep = Array((String(repeating: "[", count: 5_000) + String(repeating: "]", count: 5_000)).utf8)
        #expect(
            form { buffer in
                deep.withUnsafeBytes { StreamDataEncoding.appendSuffix(sequence: 1, data: $0, into: &buffer) }
            } == 0)
        let patch = Array("[]".utf8)
        #expect(
            form { buffer in
                patch.withUnsafeBytes {
                    StreamDataEncoding.appendSuffix(sequence: 2, patch: $0, base: 1, into: &buffer)
                }
            } == 0)
    }

    @Test("the record of unanswered streams is bounded")
    func unanswered() throws {
        var translator = LegacyTranslator(identity: Self.identity)
        let observe = #"{"type":"invocation","payload":{"callID":"%","actorID":"c","targetIdentifier":"observeState"}}"#
        func refused(_ callID: String) throws -> Int {
            _ = try incoming(observe.replacing("%", with: callID), &translator)
            let refusal = #"{"type":"response","payload":{"callID":"%","error":{"code":"internal","message":"no"}}}"#
            return outgoing(refusal.replacing("%", with: callID), &translator).count
        }
        #expect(try refused("first") == 2)
        for number in 0..<2_000 { _ = try incoming(observe.replacing("%", with: "n\(number)"), &translator) }
        #expect(try refused("last") == 1)
    }

    @Test(
        "a client's stream name is restored, also when it resembles a server's",
        arguments: [
            "6CDDE397-CBCE-4B93-B1BB-1F0B755BBF4F", "s1", "~s1", "~~s12", "s", "~", "sx", "s999999999999999", "s+1",
        ])
    func ownNames(name: String) throws {
        var translator = LegacyTranslator(identity: Self.identity)
        let resumed = try incoming(
            #"{"type":"streamResume","payload":{"streamID":"\#(name)","actorID":"c","targetIdentifier":"observeState"}}"#,
            &translator)
        var envelope = ScannedEnvelope()
        let inside = try Array(resumed.utf8).withUnsafeBytes { bytes in
            try envelope.scan(bytes)
            return envelope.string(envelope.streamID, in: bytes)
        }
        #expect(inside.wholeMatch(of: /s\d+/) == nil, "the name would be one of the server's")
        #expect(
            outgoing(#"{"type":"streamEnd","payload":{"streamID":"\#(inside)","reason":"completed"}}"#, &translator)
                == [
                    #"{"type":"streamEnd","payload":{"streamID":"\#(name)","reason":"completed"}}"#
                ])
    }

    @Test("a stream requested under a callID that resembles a server's stream name starts under that callID")
    func callIDsLikeNames() throws {
        var translator = LegacyTranslator(identity: Self.identity)
        let start =
            #"{"type":"streamStart","payload":{"streamID":"s1","callID":"s1","actorID":"c","targetIdentifier":"observeState"}}"#
        func startMessage(_ callID: String) -> String {
            #"{"type":"streamStart","payload":{"streamID":"\#(Self.stream)000000000001","callID":"\#(callID)","actorID":{"id":"c"},"targetIdentifier":"observeState"}}"#
        }
        func ask() throws {
            _ = try incoming(
                #"{"type":"invocation","payload":{"callID":"s1","actorID":"c","targetIdentifier":"observeState"}}"#,
                &translator)
        }
        func resume() throws {
            _ = try incoming(
                #"{"type":"streamResume","payload":{"streamID":"\#(Self.stream)000000000001","actorID":"c","#
                    + #""targetIdentifier":"observeState"}}"#, &translator)
        }
        try ask()
        #expect(outgoing(start, &translator) == [startMessage("s1")])
        // Resumed over the same connection its name is the callID, until it gets a response.
        try resume()
        #expect(outgoing(start, &translator) == [startMessage("\(Self.stream)000000000001")])
        for end in [
            #"{"type":"streamError","payload":{"streamID":"s1","errorMessage":"gone","code":"actorNotFound"}}"#,
            #"{"type":"streamEnd","payload":{"streamID":"s1","reason":"clientUnsubscribed"}}"#,
        ] {
            try resume()
            _ = outgoing(end, &translator)
            try ask()
            #expect(outgoing(start, &translator) == [startMessage("s1")])
        }
    }

    @Test("a value nested too deeply for a message is an error of its call or its stream")
    func tooDeep() {
        let deep = String(repeating: "[", count: 70) + String(repeating: "]", count: 70)
        let call = outgoing(#"{"type":"response","payload":{"callID":"a1","result":\#(deep)}}"#)
        #expect(call.count == 1 && call[0].hasPrefix(#"{"type":"response","payload":{"callID":"a1","errorMessage":"#))
        #expect(call[0].contains("values nest deeper than 64"))
        let data = outgoing(
            #"{"type":"streamData","payload":{"streamID":"s1","sequenceNumber":1,"timestamp":"2026-01-01T00:00:00.000Z","data":\#(deep)}}"#
        )
        #expect(data.count == 1 && data[0].hasPrefix(#"{"type":"streamError","payload":{"streamID":"\#(Self.stream)"#))
    }

    @Test(
        "a string with the form of a date loses its fraction, in results and in values of streams",
        arguments: [
            (#""2023-11-14T22:13:20.987Z""#, #""2023-11-14T22:13:20Z""#),
            (
                #"{"a":["0000-00-00T00:00:00.000Z","9999-99-99T99:99:99.999Z"],"b":1}"#,
                #"{"a":["0000-00-00T00:00:00Z","9999-99-99T99:99:99Z"],"b":1}"#
            ),
            // The names of members, other forms, and parts of strings stay.
            (#"{"2023-11-14T22:13:20.987Z":""}"#, #"{"2023-11-14T22:13:20.987Z":""}"#),
            (
                #"["2023-11-14T22:13:20Z","2023-11-14T22:13:20.98Z"]"#,
                #"["2023-11-14T22:13:20Z","2023-11-14T22:13:20.98Z"]"#
            ),
            (#""2023-11-14T22:13:20.987+""#, #""2023-11-14T22:13:20.987+""#),
            (#""2023-11-14T22:13:2x.987Z""#, #""2023-11-14T22:13:2x.987Z""#),
            (#""at 2023-11-14T22:13:20.987Z""#, #""at 2023-11-14T22:13:20.987Z""#),
            (#""2023-11-14T22:13:20.987Z.""#, #""2023-11-14T22:13:20.987Z.""#),
            (#""\"2023-11-14T22:13:20.987Z""#, #""\"2023-11-14T22:13:20.987Z""#),
            (#""2023-11-14T22:13:20.987Z\"""#, #""2023-11-14T22:13:20.987Z\"""#),
        ])
    func dates(new: String, old: String) {
        #expect(
            outgoing(#"{"type":"response","payload":{"callID":"a1","result":\#(new)}}"#)
                == [#"{"type":"response","payload":{"callID":"a1","result":\#(Self.base64(old))}}"#])
        let data = outgoing(
            #"{"type":"streamData","payload":{"streamID":"s1","sequenceNumber":1,"timestamp":"2026-01-01T00:00:00.000Z","data":\#(new)}}"#
        )
        #expect(data.count == 1 && data[0].contains(#""data":\#(Self.base64(old)),"#))
    }

    @Test("dates with and without a fraction are decoded")
    func bothForms() throws {
        for (text, fraction) in [(#"["2023-11-14T22:13:20.987Z"]"#, 0.987), (#"["2023-11-14T22:13:20Z"]"#, 0)] {
            let dates = try Array(text.utf8).withUnsafeBytes { try ValueCoder().decode([Date].self, from: $0) }
            #expect(abs(dates[0].timeIntervalSince1970 - 1_700_000_000 - fraction) < 0.000_1)
        }
    }
}

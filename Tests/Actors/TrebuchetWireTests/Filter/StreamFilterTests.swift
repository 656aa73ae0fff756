import Bytes
import Testing
import TrebuchetWire

@Suite struct StreamFilterTests {
    private func text(_ filter: StreamFilter) -> String {
        var buffer = ByteBuffer()
        filter.append(to: &buffer)
        return String(decoding: buffer.bytes, as: UTF8.self)
    }

    private func read(_ text: String) throws -> StreamFilter {
        let bytes = Array(text.utf8)
        return try bytes.withUnsafeBytes { try StreamFilter($0) }
    }

    @Test(
        "a filter is decoded as it was encoded",
        arguments: [
            (StreamFilter(), "{}"),
            (.distinct(), #"{"distinct":true}"#),
            (.path("/players/7"), #"{"path":"/players/7"}"#),
            (.path(steps: ["a/b", "c~d", ""]), #"{"path":"/a~1b/c~0d/"}"#),
            (.atMost(every: .milliseconds(100)), #"{"minIntervalMilliseconds":100}"#),
            (.atMost(every: .microseconds(1_500)), #"{"minIntervalMilliseconds":2}"#),
            (.where("/score", .greater(than: 10)), #"{"where":{"path":"/score","op":"gt","value":10}}"#),
            (.where("", .nonEmpty), #"{"where":{"path":"","op":"nonEmpty"}}"#),
            (
                .path("/a").distinct().atMost(every: .seconds(1)).where("/b", .equal("x\"y")),
                #"{"path":"/a","distinct":true,"minIntervalMilliseconds":1000,"where":{"path":"/b","op":"eq","value":"x\"y"}}"#
            ),
        ])
    func roundTrip(filter: StreamFilter, written: String) throws {
        #expect(text(filter) == written)
        #expect(try read(written) == filter)
    }

    @Test(
        "an invalid filter gives the reason",
        arguments: [
            (#"[]"#, "expected '{'"), (#"{"paht":"/a"}"#, "unknown member 'paht'"),
            (#"{"path":"a"}"#, "not a JSON Pointer"),
            (#"{"path":"/~2"}"#, "not a JSON Pointer"), (#"{"path":7}"#, "must be a string"),
            (#"{"distinct":1}"#, "true or false"),
            (#"{"where":{"path":"/a","op":"gt","value":1,"numbersAlone":1}}"#, "'numbersAlone' of a filter must be"),
            (#"{"minIntervalMilliseconds":0}"#, "from 1 to 3600000"),
            (#"{"minIntervalMilliseconds":1e3}"#, "from 1 to"), (#"{"minIntervalMilliseconds":3600001}"#, "from 1 to"),
            (#"{"where":{"path":"/a"}}"#, "requires 'path' and 'op'"),
            (#"{"where":{"path":"/a","op":"like","value":1}}"#, "unknown 'op' 'like'"),
            (#"{"where":{"path":"/a","op":"gt"}}"#, "requires a 'value'"),
            (#"{"where":{"path":"/a","op":"gt","value":1,"x":1}}"#, "unknown member 'x'"),
            (#"{"path":"/a"} x"#, "text after the end"), (#"{"path":"/a""#, "expected ','"),
        ])
    func refused(text: String, reason: String) {
        let error = #expect(throws: EnvelopeError.self) { try read(text) }
        #expect(error?.message.contains(reason) == true, "\(String(describing: error))")
    }

    @Test("a path or a value that is too long is rejected")
    func tooLong() {
        let long = String(repeating: "a", count: 1_024)
        #expect(throws: EnvelopeError.self) { try read(#"{"path":"/\#(long)"}"#) }
        #expect(throws: EnvelopeError.self) { try read(#"{"where":{"path":"","op":"eq","value":"\#(long)"}}"#) }
    }

    // MARK: Evaluation

    private func sent(_ filter: StreamFilter, _ states: [String]) -> [String?] {
        var evaluation = FilterEvaluation(filter)
        return states.map { state in
            Array(state.utf8).withUnsafeBytes { state in
                var parts = FilterOperands()
                guard evaluation.evaluate(state, &parts) == .counts else { return nil }
                return String(
                    decoding: parts.part(evaluation.pointer, of: state).map { Array($0) } ?? Array("null".utf8),
                    as: UTF8.self)
            }
        }
    }

    @Test("a path sends its part when that has changed, and null where there is none")
    func path() {
        let states = [
            #"{"a":{"b":1},"c":1}"#, #"{"a":{"b":1},"c":2}"#, #"{"a":{"b":2}}"#, #"{"a":{}}"#, #"{"a":[]}"#,
            #"{"a":{"b":[1, {"x":"/"}]}}"#,
        ]
        #expect(sent(.path("/a/b"), states) == ["1", nil, "2", "null", nil, #"[1, {"x":"/"}]"#])
        #expect(sent(.path("/a/b/1/x"), states) == ["null", nil, nil, nil, nil, #""/""#])
    }

    @Test("distinct drops values equal to the last one, whatever their notation")
    func distinct() {
        let states = [#"{"a":1,"b":2}"#, #"{"b":2.0,"a":1}"#, #"{"a":1}"#, #"{"a":1,"b":2}"#]
        #expect(sent(.distinct(), states) == [states[0], nil, states[2], states[3]])
        #expect(sent(StreamFilter(), states) == states)
    }

    @Test(
        "a condition evaluates a part of the whole state",
        arguments: [
            (.equal(10), "10", true), (.equal(10), "10.0", true), (.equal(10), #""10""#, false),
            (.equal("a"), #""\u0061""#, true), (.equal(true), "true", true), (.notEqual(1), "2", true),
            (.notEqual(1), "1e0", false), (.notEqual(1), nil, true), (.equal(1), nil, false),
            (.less(than: 10), "9.99", true), (.less(than: 10), "10", false), (.less(than: 10), "null", false),
            (.less(than: 10), nil, false), (.less(than: "b"), #""a""#, true), (.less(than: "b"), "1", false),
            (.atMost(10), "10.00", true), (.atMost(10), "10.01", false), (.greater(than: -1), "-0.5", true),
            (.greater(than: 10), #""11""#, false), (.atLeast(10), "1e1", true), (.atLeast("b"), #""ba""#, true),
            (.atLeast(true), "true", false), (.exists, "0", true), (.exists, "null", false), (.exists, nil, false),
            (.nonEmpty, #""""#, false), (.nonEmpty, #""x""#, true), (.nonEmpty, "[ ]", false), (.nonEmpty, "[0]", true),
            (.nonEmpty, "{}", false), (.nonEmpty, #"{"a":1}"#, true), (.nonEmpty, "7", false), (.nonEmpty, nil, false),
        ] as [(StreamCondition, String?, Bool)])
    func conditions(condition: StreamCondition, part: String?, holds: Bool) {
        let state = part.map { #"{"p":\#($0),"q":1}"# } ?? #"{"q":1}"#
        #expect(sent(.where("/p", condition).path("/q"), [state]) == [holds ? "1" : nil])
    }

    @Test("distinct compares with the last version that met the condition")
    func conditionAndDistinct() {
        let filter = StreamFilter.path("/v").where("/on", .equal(true))
        let states = [(1, true), (2, false), (1, true), (3, true)].map { #"{"v":\#($0.0),"on":\#($0.1)}"# }
        #expect(sent(filter, states) == ["1", nil, nil, "3"])
    }

    @Test("a text is compared by its first characters, whatever its length and notation")
    func longTexts() {
        let value = String(repeating: "b", count: 1_000)
        func state(_ text: String) -> String { #"{"p":"\#(text)","q":1}"# }
        let long = String(repeating: #"\u0062\ud83d\ude00"#, count: 50_000)
        for (text, order) in [(value, "eq"), (long, "gt"), (value + "a", "gt"), ("a" + long, "lt")] {
            let scalar = StreamScalar.string(value)
            #expect((sent(.where("/p", .equal(scalar)), [state(text)])[0] != nil) == (order == "eq"))
            #expect((sent(.where("/p", .less(than: scalar)), [state(text)])[0] != nil) == (order == "lt"))
            #expect((sent(.where("/p", .greater(than: scalar)), [state(text)])[0] != nil) == (order == "gt"))
        }
    }

    @Test("many pointers are found in one pass, like each of them separately")
    func pointers() {
        let texts = [
            #"{"a":{"b":[1,{"c":2}],"a":3},"b":4,"a/b":5,"":6,"0":7}"#, #"[[1,2],{"a":1,"a":2},3]"#, "7",
            #"{"a":1"#, #"{"\u0061":{"b":1}, "x" : {"y": [ ] } }"#,
        ]
        let pointers =
            [
                "", "/a", "/a/b", "/a/b/1", "/a/b/1/c", "/a/b/2", "/b", "/a~1b", "/", "/0", "/1", "/1/a", "/0/1",
                "/x/y", "/-",
            ]
            + (0..<20).map { "/n\($0)/deep" }
        for text in texts {
            Array(text.utf8).withUnsafeBytes { text in
                let found = PointerSet(pointers).lookup(in: text)
                for pointer in pointers {
                    #expect(found[pointer] == .some(JSONPointer(pointer)?.lookup(in: text)), "\(pointer)")
                }
            }
        }
    }

    // MARK: Version 2

    @Test(
        "the filters of version 2 have current equivalents",
        arguments: [
            (#"{"type":"all"}"#, nil), (#"{"type":"predefined","name":"changed","parameters":{}}"#, .distinct()),
            (#"{"type":"predefined","name":"nonEmpty"}"#, .where("", .nonEmpty)),
            (
                #"{"type":"predefined","name":"nonEmpty","parameters":{"field":"a/b"}}"#,
                .where("/a~1b", .nonEmpty)
            ),
            (#"{"type":"predefined","name":"threshold","parameters":{"field":"count"}}"#, nil),
            (#"{"type":"predefined","name":"threshold","parameters":{"field":"count","value":"ten"}}"#, nil),
            (#"{"type":"predefined","name":"threshold","parameters":{"value":"10"}}"#, nil),
            (#"{"type":"custom","name":"mine"}"#, nil), (#"{"type":"predefined","name":"odd"}"#, nil),
            (#"{"type":"predefined"}"#, nil), ("{}", nil),
        ] as [(String, StreamFilter?)])
    func legacy(text: String, filter: StreamFilter?) throws {
        #expect(try Array(text.utf8).withUnsafeBytes { try StreamFilter.legacy($0) } == filter)
    }

    @Test(
        "a threshold of version 2 compares numbers, and admits values that are not numbers",
        arguments: [
            (nil, [10, 11]), ("gt", [10, 11]), (">", [10, 11]), ("bogus", [10, 11]), ("gte", [9, 10, 11]),
            (">=", [9, 10, 11]), ("lt", [7, 8]), ("<", [7, 8]), ("lte", [7, 8, 9]), ("<=", [7, 8, 9]), ("eq", [9]),
            ("==", [9]), ("neq", [7, 8, 10, 11]), ("!=", [7, 8, 10, 11]),
        ] as [(String?, [Int])])
    func threshold(comparison: String?, passing: [Int]) throws {
        let more = comparison.map { #","comparison":"\#($0)""# } ?? ""
        let text = #"{"type":"predefined","name":"threshold","parameters":{"field":"count","value":"9"\#(more)}}"#
        let filter = try #require(try Array(text.utf8).withUnsafeBytes { try StreamFilter.legacy($0) })
        #expect(try read(self.text(filter)) == filter, "version 3 can say the same")
        var evaluation = FilterEvaluation(filter)
        func counts(_ state: String) -> Bool {
            var parts = FilterOperands()
            let outcome = Array(state.utf8).withUnsafeBytes { evaluation.evaluate($0, &parts) }
            return outcome == .counts
        }
        #expect((7...11).filter { counts(#"{"count":\#($0)}"#) } == passing)
        for other in [#"{"count":"9"}"#, #"{"count":null}"#, "{}", "[1]", "9"] { #expect(counts(other), "\(other)") }
    }

    @Test(
        "invalid filters of version 2 are rejected",
        arguments: [
            "[]", #""all""#,
            #"{"type":"predefined","name":"nonEmpty","parameters":{"field":"\#(String(repeating: "x", count: 1_024))"}}"#,
        ])
    func noLegacy(text: String) {
        #expect(throws: EnvelopeError.self) { try Array(text.utf8).withUnsafeBytes { try StreamFilter.legacy($0) } }
    }
}

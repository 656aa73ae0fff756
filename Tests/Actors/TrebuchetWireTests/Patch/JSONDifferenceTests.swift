import Testing
import TrebuchetWire

@Suite("Differences as JSON Patch")
struct JSONDifferenceTests {
    @Test(
        "a difference has the protocol's form, and contains only the changes",
        arguments: [
            ("[1,2,3]", "[1,2,3]", "[]"),
            (#"{"a":[1]}"#, #"{"a":[2]}"#, #"[{"op":"replace","path":"/a/0","value":2}]"#),
            (
                #"{"todos":[{"id":1}]}"#, #"{"todos":[{"id":1},{"id":2}]}"#,
                #"[{"op":"add","path":"/todos/-","value":{"id":2}}]"#
            ),
            ("[]", "[1]", #"[{"op":"add","path":"/-","value":1}]"#),
            ("[1]", "[]", #"[{"op":"remove","path":"/0"}]"#),
            ("[1,2,3]", "[1,9,2,3]", #"[{"op":"add","path":"/1","value":9}]"#),
            ("[1,2,3]", "[1,3]", #"[{"op":"remove","path":"/1"}]"#),
            (
                #"["an element that is long enough to stay","a","b"]"#, #"["an element that is long enough to stay"]"#,
                #"[{"op":"remove","path":"/2"},{"op":"remove","path":"/1"}]"#
            ),
            ("[1]", "[12]", #"[{"op":"replace","path":"/0","value":12}]"#),
            (#"["a"]"#, #"["a","a"]"#, #"[{"op":"add","path":"/-","value":"a"}]"#),
            (#"{"a":1}"#, #"{"a":1,"b":2}"#, #"[{"op":"add","path":"/b","value":2}]"#),
            (#"{"a":1,"b":2}"#, #"{"b":2}"#, #"[{"op":"remove","path":"/a"}]"#),
            (#"{"a":1,"b":2}"#, #"{"b":2,"a":1}"#, "[]"),
            (#"{"a":[1,2]}"#, #"{ "a": [1, 2] }"#, "[]"),
            (#"{"a/~\"":{"é":1}}"#, #"{"a/~\"":{"é":2}}"#, #"[{"op":"replace","path":"/a~1~0\"/é","value":2}]"#),
            (#"{"\u002f":1}"#, #"{"\u002f":2}"#, #"[{"op":"replace","path":"/~1","value":2}]"#),
            (
                #"{"a":{"b":1},"long":"a long text that does not change","c":{"d":1}}"#,
                #"{"a":{"b":2},"long":"a long text that does not change","c":{"d":2}}"#,
                #"[{"op":"replace","path":"/a/b","value":2},{"op":"replace","path":"/c/d","value":2}]"#
            ),
            (
                #"[{"id":1,"text":"one"},{"id":2,"text":"a long text that does not change, and so stays as it is","n":1}]"#,
                #"[{"id":2,"text":"a long text that does not change, and so stays as it is","n":2}]"#,
                #"[{"op":"remove","path":"/0"},{"op":"replace","path":"/0/n","value":2}]"#
            ),
            (#"{"a":[]}"#, #"{"a":{}}"#, #"[{"op":"replace","path":"/a","value":{}}]"#),
            ("1", "2", #"[{"op":"replace","path":"","value":2}]"#),
        ])
    func shape(_ old: String, _ new: String, _ patch: String) {
        #expect(JSONPatch.difference(from: old, to: new) == patch)
    }

    static let list = (0..<50).map { #"{"id":\#($0),"title":"the title of item \#($0)","isDone":false}"# }

    private func text(_ elements: [String]) -> String { #"{"todos":[\#(elements.joined(separator: ","))],"next":50}"# }

    @Test("a removed and a changed element cost two operations, at any position")
    func removal() {
        var new = Self.list
        new.remove(at: 3)
        new[40] = new[40].replacing("false", with: "true")
        #expect(
            JSONPatch.difference(from: text(Self.list), to: text(new))
                == #"[{"op":"remove","path":"/todos/3"},{"op":"replace","path":"/todos/40/isDone","value":true}]"#)
    }

    @Test("an inserted and a changed element cost two operations, at any position")
    func insertion() {
        var new = Self.list
        new.insert(#"{"id":99}"#, at: 3)
        new[40] = new[40].replacing("false", with: "true")
        #expect(
            JSONPatch.difference(from: text(Self.list), to: text(new))
                == #"[{"op":"add","path":"/todos/3","value":{"id":99}},{"op":"replace","path":"/todos/40/isDone","value":true}]"#
        )
    }

    @Test("a moved element costs a removal and an insertion", arguments: [(0, 49), (49, 0), (10, 12), (30, 7)])
    func move(_ from: Int, _ to: Int) throws {
        var new = Self.list
        new.insert(new.remove(at: from), at: to)
        let patch = try #require(JSONPatch.difference(from: text(Self.list), to: text(new)))
        #expect(patch.split(separator: #"{"op""#).count == 3, "\(patch)")
    }

    @Test("a value with mostly changed parts is replaced")
    func replacement() {
        #expect(
            JSONPatch.difference(from: #"{"x":[1,2,3,4,5,6],"y":0}"#, to: #"{"x":[6,5,4,3,2,1],"y":0}"#)
                == #"[{"op":"replace","path":"/x","value":[6,5,4,3,2,1]}]"#)
    }

    @Test("there is no difference when it would not be shorter than the limit")
    func limit() {
        let (old, new) = (#"{"a":[1,2,3]}"#, #"{"a":[1,2,4]}"#)
        let patch = #"[{"op":"replace","path":"/a/2","value":4}]"#
        #expect(JSONPatch.difference(from: old, to: new, maximumBytes: new.utf8.count) == nil)
        #expect(JSONPatch.difference(from: old, to: new, maximumBytes: patch.utf8.count) == nil)
        #expect(JSONPatch.difference(from: old, to: new, maximumBytes: patch.utf8.count + 1) == patch)
        #expect(JSONPatch.difference(from: old, to: old, maximumBytes: 2) == nil)
        #expect(JSONPatch.difference(from: old, to: new, maximumBytes: 0) == nil)
    }

    @Test("texts that are invalid JSON where they differ, or nest too deeply, have no difference")
    func refused() {
        func nested(_ depth: Int, _ inner: String) -> String {
            String(repeating: "[", count: depth) + inner + String(repeating: "]", count: depth)
        }
        #expect(JSONPatch.difference(from: nested(64, "1"), to: nested(64, "2")) != nil)
        #expect(JSONPatch.difference(from: nested(65, "1"), to: nested(65, "2")) == nil)
        #expect(JSONPatch.difference(from: nested(100_000, "1"), to: nested(100_000, "2")) == nil)
        #expect(JSONPatch.difference(from: "[1,x]", to: "[1,2]") == nil)
        #expect(JSONPatch.difference(from: "[1,2]", to: "[1,x]") == nil)
        #expect(JSONPatch.difference(from: #"{"a":1}"#, to: #"{"b" 1}"#) == nil)
    }

    @Test("texts constructed to be costly are compared in time", .timeLimit(.minutes(5)))
    func hostile() {
        let count = 20_000
        // Every element differs, below a long name, and each patch is longer than the replaced value.
        let name = String(repeating: "n", count: 1_000)
        func wide(_ value: Int) -> String {
            let element = "[\(Array(repeating: "\(value)", count: 50).joined(separator: ","))]"
            return #"{"\#(name)":[\#(Array(repeating: element, count: count / 50).joined(separator: ","))]}"#
        }
        #expect(JSONPatch.difference(from: wide(1), to: wide(2), maximumBytes: 1 << 20)?.isEmpty == false)
        // Two arrays without equal elements at equal positions.
        let numbers = (0..<count).map(String.init)
        let new = "[\(numbers.reversed().joined(separator: ","))]"
        let old = "[\(numbers.joined(separator: ","))]"
        #expect(JSONPatch.difference(from: old, to: new, maximumBytes: 1 << 30) != nil)
    }
}

import Testing
import TrebuchetWire

@Suite("Applying JSON Patch")
struct JSONPatchTests {
    private func check(_ test: PatchCase) {
        let result = Result { () throws(JSONPatchError) in try JSONPatch.apply(test.patch, to: test.document) }
        switch (result, test.outcome) {
        case (.success(let text), .success(let expected)):
            #expect(JSONText.isEqual(text, expected), "\(text) instead of \(expected)")
        case (.failure(let error), .failure(let code)):
            #expect(error.code == code, "\(error)")
        default:
            Issue.record("\(result) instead of \(test.outcome)")
        }
    }

    @Test("add inserts a value where one can be", arguments: PatchCase.additions)
    func addition(_ test: PatchCase) { check(test) }

    @Test("remove deletes an existing value", arguments: PatchCase.removals)
    func removal(_ test: PatchCase) { check(test) }

    @Test("replace substitutes an existing value", arguments: PatchCase.replacements)
    func replacement(_ test: PatchCase) { check(test) }

    @Test("move transfers a value to another position", arguments: PatchCase.moves)
    func move(_ test: PatchCase) { check(test) }

    @Test("copy inserts a value at a second position", arguments: PatchCase.copies)
    func copy(_ test: PatchCase) { check(test) }

    @Test("test compares values, not their notation", arguments: PatchCase.comparisons)
    func comparison(_ test: PatchCase) { check(test) }

    @Test("paths are JSON Pointers", arguments: PatchCase.paths)
    func path(_ test: PatchCase) { check(test) }

    @Test("an invalid patch, or one without a target, is rejected", arguments: PatchCase.shapes)
    func shape(_ test: PatchCase) { check(test) }

    @Test("bytes that no operation touches stay unchanged")
    func untouched() throws {
        let text = #"{"b":[1.0,{"x" : "\u0061"}],"a":[10,20,30],"c":"\/"}"#
        let patch = #"[{"op":"replace","path":"/a/1","value":2e1},{"op":"remove","path":"/a/0"}]"#
        #expect(try JSONPatch.apply(patch, to: text) == #"{"b":[1.0,{"x" : "\u0061"}],"a":[2e1,30],"c":"\/"}"#)
    }

    @Test("an error names the failed operation and the reason")
    func message() {
        let patch = #"[{"op":"add","path":"/a","value":1},{"op":"remove","path":"/x~1y"}]"#
        let error = #expect(throws: JSONPatchError.self) { try JSONPatch.apply(patch, to: "{}") }
        #expect(error?.operation == 1)
        #expect(error?.description == "operation 1: '/x~1y' does not exist")
    }

    @Test("a result above the limit is rejected, and one at the limit is not")
    func limit() throws {
        let patch = #"[{"op":"add","path":"/-","value":22}]"#
        #expect(try JSONPatch.apply(patch, to: "[1]", maximumBytes: 6) == "[1,22]")
        #expect(throws: JSONPatchError.self) { try JSONPatch.apply(patch, to: "[1]", maximumBytes: 5) }
    }

    @Test("a document that doubles with each operation stops at the limit")
    func doubling() {
        let copies = Array(repeating: #"{"op":"copy","from":"","path":"/-"}"#, count: 1_000).joined(separator: ",")
        let error = #expect(throws: JSONPatchError.self) { try JSONPatch.apply("[\(copies)]", to: "[1]") }
        #expect(error?.code == .tooLarge)
    }

    @Test("work proportional to operations times document size stops at the limit")
    func work() {
        let numbers = Array(repeating: "0", count: 50_000).joined(separator: ",")
        let pair = #"{"op":"move","from":"/a","path":"/b"},{"op":"move","from":"/b","path":"/a"}"#
        let opening = #"{"op":"add","path":"/a/-","value":0}"#
        let patch = "[\(([opening] + Array(repeating: pair, count: 2_000)).joined(separator: ","))]"
        let error = #expect(throws: JSONPatchError.self) {
            try JSONPatch.apply(patch, to: #"{"a":[\#(numbers)]}"#)
        }
        #expect(error?.code == .tooLarge)
    }

    @Test("a changed value cannot be moved deeper than the message limit, with or without parts")
    func deepMoves() throws {
        func document(_ depth: Int) -> String {
            #"{"a":[[]],"d":"# + String(repeating: "[", count: depth) + String(repeating: "]", count: depth) + "}"
        }
        func moving(_ from: String, _ depth: Int) -> String {
            let path = "/d" + String(repeating: "/0", count: depth - 1) + "/-"
            return
                #"[{"op":"add","path":"/a/0/-","value":1},{"op":"remove","path":"/a/0/0"},{"op":"move","from":"\#(from)","path":"\#(path)"}]"#
        }
        // The object itself and the arrays in "d" are 63 levels.
        #expect(throws: Never.self) { try JSONPatch.apply(moving("/a/0", 62), to: document(62)) }
        #expect(throws: JSONPatchError.self) { try JSONPatch.apply(moving("/a", 62), to: document(62)) }
        #expect(throws: JSONPatchError.self) { try JSONPatch.apply(moving("/a/0", 63), to: document(63)) }
    }

    @Test("values nest as deep as in a message, whatever their source")
    func depth() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        func adding(_ depth: Int) -> String { #"[{"op":"add","path":"/0/0/-","value":\#(nested(depth))}]"# }
        #expect(try JSONPatch.apply(adding(61), to: "[[[]]]") == "[[[\(nested(61))]]]")
        #expect(throws: JSONPatchError.self) { try JSONPatch.apply(adding(62), to: "[[[]]]") }
        #expect(throws: JSONPatchError.self) { try JSONPatch.apply(adding(1), to: nested(65)) }
        // Parsed by the first operation, and moved deeper by the second.
        let moving = #"[{"op":"add","path":"/1/-","value":0},{"op":"move","from":"/1","path":"/0/-"}]"#
        #expect(try JSONPatch.apply(moving, to: "[[],[\(nested(61))]]") == "[[[\(nested(61)),0]]]")
        #expect(throws: JSONPatchError.self) { try JSONPatch.apply(moving, to: "[[],[\(nested(62))]]") }
    }

    @Test("members of a large object are found like those of a small one")
    func largeObject() throws {
        let count = 1_000
        let members = (0..<count).map { #""k\#($0)":\#($0)"# }.joined(separator: ",")
        var operations = (0..<count).reversed().map { #"{"op":"replace","path":"/k\#($0)","value":-1}"# }
        operations += stride(from: 0, to: count, by: 2).map { #"{"op":"remove","path":"/k\#($0)"}"# }
        operations += stride(from: 0, to: count, by: 4).map { #"{"op":"add","path":"/k\#($0)","value":1}"# }
        let result = try JSONPatch.apply("[\(operations.joined(separator: ","))]", to: "{\(members)}")
        let expected = (0..<count).filter { $0 % 2 == 1 || $0 % 4 == 0 }.map { #""k\#($0)":\#($0 % 2 == 1 ? -1 : 1)"# }
        #expect(JSONText.isEqual(result, "{\(expected.joined(separator: ","))}"))
    }
}

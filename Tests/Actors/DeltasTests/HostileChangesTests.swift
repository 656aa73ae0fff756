import Deltas
import Testing

@Suite("Invalid changes")
struct HostileChangesTests {
    private static let item = #"{"id":9,"title":"x","isDone":false}"#
    private static let present = #"{"id":2,"title":"x","isDone":false}"#

    @Test(
        "invalid changes throw, and leave the value unchanged",
        arguments: [
            (#"{"op":"replace","path":"/3","value":\#(item)}"#, "out of range"),
            (#"{"op":"replace","path":"/-","value":\#(item)}"#, "out of range"),
            (#"{"op":"replace","path":"/-1","value":\#(item)}"#, "out of range"),
            (#"{"op":"replace","path":"/01","value":\#(item)}"#, "out of range"),
            (#"{"op":"replace","path":"/99999999999999999999","value":\#(item)}"#, "out of range"),
            (#"{"op":"replace","path":"/","value":\#(item)}"#, "out of range"),
            (#"{"op":"replace","path":"/0","value":\#(present)}"#, "the id 2 already exists"),
            (#"{"op":"replace","path":"/0","value":17}"#, "does not decode"),
            (#"{"op":"replace","path":"","value":17}"#, "does not decode"),
            (#"{"op":"replace","path":"","value":[\#(item),\#(item)]}"#, "two elements have the id 9"),
            (#"{"op":"replace","path":"/0/title","value":"x"}"#, "as a whole"),
            (#"{"op":"add","path":"/4","value":\#(item)}"#, "out of range"),
            (#"{"op":"add","path":"/-/0","value":\#(item)}"#, "as a whole"),
            (#"{"op":"add","path":"/0","value":\#(present)}"#, "the id 2 already exists"),
            (#"{"op":"add","path":"","value":[]}"#, "only be replaced"),
            (#"{"op":"add","path":"/0"}"#, "missing 'value'"),
            (#"{"op":"remove","path":"/3"}"#, "out of range"),
            (#"{"op":"remove","path":""}"#, "only be replaced"),
            (#"{"op":"move","from":"/3","path":"/0"}"#, "out of range"),
            (#"{"op":"move","from":"/0","path":"/3"}"#, "out of range"),
            (#"{"op":"move","from":"","path":"/0"}"#, "as a whole"),
            (#"{"op":"move","path":"/0"}"#, "missing 'from'"),
            (#"{"op":"copy","from":"/0","path":"/1"}"#, "'copy' is not supported"),
            (#"{"op":"test","path":"/0","value":1}"#, "'test' is not supported"),
            (#"{"op":"swap","path":"/0"}"#, "unknown 'op'"),
            (#"{"op":"remove","path":"0"}"#, "not a JSON Pointer"),
            (#"{"path":"/0"}"#, "missing 'op'"),
            ("17", "expected '{'"),
        ])
    func table(operation: String, problem: String) throws {
        let items: KeyedCollection = [Item(id: 1, title: "a"), Item(id: 2, title: "b"), Item(id: 3, title: "c")]
        var changed = items
        // Also after a valid change.
        for patch in ["[\(operation)]", #"[{"op":"move","from":"/2","path":"/2"},\#(operation)]"#] {
            let error = #expect(throws: StateChangesError.self) { changed = try items.applying(patch) }
            #expect(error?.message.contains(problem) == true, "\(error!)")
        }
        #expect(changed == items)
        // The same changes, without a copy made by the test.
        if let changes = try? Self.changes(#"[{"op":"remove","path":"/2"},\#(operation)]"#) {
            #expect(throws: StateChangesError.self) { try changed.apply(changes) }
            #expect(changed == items)
            #expect(changed.index(id: 3) == 2)
        }
    }

    private static func changes(_ patch: String) throws -> StateChanges {
        try Array(patch.utf8).withUnsafeBytes { try StateChanges(patch: $0) }
    }

    @Test("a patch with more operations than the limit of changes is rejected")
    func tooMany() throws {
        let move = #"{"op":"move","from":"/0","path":"/0"}"#
        let most = Array(repeating: move, count: 65_536).joined(separator: ",")
        #expect(try Self.changes("[\(most)]").isEmpty == false)
        #expect(throws: StateChangesError.self) { try Self.changes("[\(most),\(move)]") }
    }

    @Test("an invalid patch text is rejected", arguments: ["", "{}", "[", "[{}", "[]x", "[1]", "null"])
    func noPatch(text: String) {
        #expect(throws: StateChangesError.self) { try Self.changes(text) }
    }

    @Test(
        "invalid changes of a state with parts throw, and leave it unchanged",
        arguments: [
            (#"{"op":"replace","path":"/other","value":1}"#, "no member 'other'"),
            (#"{"op":"remove","path":""}"#, "only be replaced"),
            (#"{"op":"replace","path":"","value":{}}"#, "does not decode"),
            (#"{"op":"remove","path":"/title"}"#, "only be replaced"),
            (#"{"op":"replace","path":"/title/0","value":"x"}"#, "no member '0'"),
            (#"{"op":"replace","path":"/title","value":1}"#, "does not decode"),
            (#"{"op":"replace","path":"/todos/9","value":\#(item)}"#, "out of range"),
            (#"{"op":"move","from":"/todos/0","path":"/notes/items/0"}"#, "cannot cross members"),
            (#"{"op":"move","from":"","path":"/todos/0"}"#, "cannot cross members"),
        ])
    func parts(operation: String, problem: String) {
        let board = Board(title: "t", todos: [Item(id: 1, title: "a")])
        var changed = board
        let error = #expect(throws: StateChangesError.self) {
            try changed.apply(
                Self.changes(#"[{"op":"replace","path":"/title","value":"new"},\#(operation)]"#))
        }
        #expect(error?.message.contains(problem) == true, "\(error!)")
        #expect(changed == board)
    }
}

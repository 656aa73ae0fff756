import Deltas
import Testing
import TrebuchetWire

@Suite("States of several parts")
struct DeltaStateTests {
    private func check(_ change: (inout Board) -> Void) throws -> String {
        let old = Board(
            title: "old", todos: [Item(id: 1, title: "a"), Item(id: 2, title: "b")],
            notes: Notes(items: [Item(id: 7, title: "n")]))
        var new = old
        var reader = ChangeReader()
        #expect(reader.take(from: &new, with: ValueCoder()) == nil)
        change(&new)
        let taken = reader.take(from: &new, with: ValueCoder())
        let changes = try #require(taken)
        #expect(try old.applying(changes.patch) == new)
        #expect(try applies(changes.patch, from: coder.encode(old), to: coder.encode(new)))
        // Without an intermediate text as well.
        var applied = old
        try applied.apply(changes)
        #expect(applied == new)
        return changes.text
    }

    @Test("changes of a part are changes of the member")
    func parts() throws {
        #expect(try check { _ in } == "[]")
        #expect(try check { $0.title = "new" } == #"[{"op":"replace","path":"/title","value":"new"}]"#)
        #expect(try check { $0.todos.remove(id: 1) } == #"[{"op":"remove","path":"/todos/0"}]"#)
        #expect(
            try check { $0.todos.move(id: 1, to: 1) } == #"[{"op":"move","from":"/todos/0","path":"/todos/1"}]"#)
    }

    @Test("changes of nested parts have their full path, correctly escaped")
    func nested() throws {
        #expect(
            try check { $0.notes.items.removeAll() }
                == #"[{"op":"replace","path":"/notes/a~1b~0c \"d\"","value":[]}]"#)
        #expect(
            try check { board in
                board.title += "!"
                board.notes.items.remove(id: 7)
                board.todos.append(Item(id: 3, title: "c"))
                board.todos.update(id: 1) { $0.isDone = true }
            }.contains(#"{"op":"remove","path":"/notes/a~1b~0c \"d\"/0"}"#))
    }

    @Test("a state with a replaced part is sent as a whole")
    func replacedPart() {
        var board = Board()
        var reader = ChangeReader()
        #expect(reader.take(from: &board, with: ValueCoder()) == nil)
        board.todos = [Item(id: 1, title: "a")]
        #expect(reader.take(from: &board, with: ValueCoder()) == nil)
        board.todos.update(id: 1) { $0.title = "b" }
        #expect(reader.take(from: &board, with: ValueCoder())?.isEmpty == false)
        board = Board()
        #expect(reader.take(from: &board, with: ValueCoder()) == nil)
    }

    @Test("a part with too many changes makes those of the whole unknown, once")
    func fullPart() {
        var board = Board()
        var reader = ChangeReader()
        #expect(reader.take(from: &board, with: ValueCoder()) == nil)
        for number in 0...64 { board.todos.insert(Item(id: number, title: ""), at: 0) }
        board.title = "many"
        #expect(reader.take(from: &board, with: ValueCoder()) == nil)
        board.title = "one"
        let changes = reader.take(from: &board, with: ValueCoder())
        #expect(changes?.text == #"[{"op":"replace","path":"/title","value":"one"}]"#)
    }

    @Test("changes that are not all known cannot be applied")
    func unknownPart() throws {
        var board = Board()
        for number in 0...64 { board.todos.append(Item(id: number, title: "")) }
        board.notes.items.append(Item(id: 1, title: ""))
        let taken = board.takeChanges()
        let changes = try #require(taken)
        #expect(!changes.isKnown && !changes.isEmpty)
        var other = Board(title: "as it was")
        #expect(throws: StateChangesError.self) { try other.apply(changes) }
        #expect(throws: StateChangesError.self) { try other.todos.apply(changes) }
        #expect(other == Board(title: "as it was"))
    }

    @Test("a whole value replaces the state")
    func whole() throws {
        let board = Board(title: "new", todos: [Item(id: 5, title: "e")])
        let json = String(decoding: try coder.encode(board), as: UTF8.self)
        let patch = #"[{"op":"replace","path":"","value":\#(json)},{"op":"remove","path":"/todos/0"}]"#
        #expect(try Board(title: "old").applying(patch) == Board(title: "new"))
    }

    @Test("a state can create its changes manually, and read them operation by operation")
    func byHand() throws {
        var changes = StateChanges()
        changes.add(["x": 1], at: "a/b", "0")
        changes.replace("c", at: "d")
        changes.remove(at: "e")
        changes.move(from: "f", to: "g")
        #expect(
            changes.text
                == #"[{"op":"add","path":"/a~1b/0","value":{"x":1}},{"op":"replace","path":"/d","value":"c"},"#
                + #"{"op":"remove","path":"/e"},{"op":"move","from":"/f","path":"/g"}]"#)
        let read = try changes.patch.withUnsafeBytes { try StateChanges(patch: $0) }
        let operations = Array(read.operations)
        #expect(operations.map(\.path) == [["a/b", "0"], ["d"], ["e"], ["g"]])
        #expect(operations.map(\.from) == [nil, nil, nil, ["f"]])
        #expect(try operations[0].value(as: [String: Int].self) == ["x": 1])
        #expect(throws: StateChangesError.self) { try operations[2].value(as: String.self) }
    }
}

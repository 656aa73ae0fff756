import Testing
import TrebuchetWire

@Suite("Properties of patches")
struct JSONPatchPropertyTests {
    @Test("a difference turns one text into the other, for any two texts", arguments: 0..<4)
    func difference(_ series: Int) throws {
        var random = RandomJSON(seed: UInt64(series))
        for _ in 0..<2_500 {
            let old = random.value(depth: 5)
            let new = random.pick(from: 20) == 0 ? random.value(depth: 5) : random.changed(old)
            try check(old, new, &random)
        }
    }

    @Test("a difference of lists turns one into the other, and is no longer than a replacement")
    func lists() throws {
        var random = RandomJSON(seed: 7)
        for _ in 0..<300 {
            let old = random.list(100)
            try check(old, random.changed(old), &random)
        }
    }

    private func check(_ old: JSONTree, _ new: JSONTree, _ random: inout RandomJSON) throws {
        var style = TextStyle(random: random.pick(from: 2) == 0 ? nil : random)
        let (before, after) = (old.text(&style), new.text(&style))
        random = RandomJSON(seed: random.next())
        let patch = try #require(JSONPatch.difference(from: before, to: after), "\(before) to \(after)")
        let result = try JSONPatch.apply(patch, to: before)
        #expect(JSONText.isEqual(result, after), "\(before) to \(after) by \(patch) gave \(result)")
        // No longer than a replacement of the whole.
        #expect(patch.utf8.count <= after.utf8.count + #"[{"op":"replace","path":"","value":}]"#.utf8.count)
        // The limit is exact to the byte.
        #expect(JSONPatch.difference(from: before, to: after, maximumBytes: patch.utf8.count + 1) == patch)
        let shorter = JSONPatch.difference(from: before, to: after, maximumBytes: patch.utf8.count)
        #expect(shorter == nil || shorter!.utf8.count < patch.utf8.count)
    }

    @Test("random operations behave as on a tree, and fail where they fail there", arguments: 0..<4)
    func operations(_ series: Int) {
        var random = RandomJSON(seed: UInt64(100 + series))
        var failures = 0
        for _ in 0..<2_500 {
            let document = random.value(depth: 4)
            var tree: JSONTree? = document
            var operations: [String] = []
            for _ in 0...random.pick(from: 3) {
                guard let before = tree else { break }
                let (operation, after) = self.operation(on: before, &random)
                operations.append(operation)
                tree = after
            }
            var style = TextStyle(random: random)
            let text = document.text(&style)
            let patch = "[\(operations.joined(separator: ","))]"
            let result = try? JSONPatch.apply(patch, to: text)
            if let tree {
                var plain = TextStyle()
                let expected = tree.text(&plain)
                #expect(
                    result.map { JSONText.isEqual($0, expected) } == true, "\(text) by \(patch): \(result ?? "nil")")
            } else {
                failures += 1
                #expect(result == nil, "\(text) by \(patch)")
            }
        }
        #expect((200..<2_000).contains(failures), "the patches are too good or too bad: \(failures)")
    }

    /// An operation and its result for a tree; nil when it must fail.
    private func operation(on tree: JSONTree, _ random: inout RandomJSON) -> (String, JSONTree?) {
        let (path, from) = (random.path(in: tree), random.path(in: tree))
        let value = random.value(depth: 2)
        var style = TextStyle(random: random)
        func text(_ path: [String]) -> String {
            let text = path.map {
                "/" + $0.replacing("~", with: "~0").replacing("/", with: "~1")
            }.joined()
            return style.quoted(text)
        }
        let found = tree.value(at: path[...])
        let source = tree.value(at: from[...])
        switch random.pick(from: 6) {
        case 0:
            return (
                #"{"op":"add","path":\#(text(path)),"value":\#(value.text(&style))}"#, tree.adding(value, at: path[...])
            )
        case 1: return (#"{"op":"remove","path":\#(text(path))}"#, tree.removing(at: path[...]))
        case 2:
            let result = path.isEmpty ? value : tree.removing(at: path[...])?.adding(value, at: path[...])
            return (#"{"op":"replace","path":\#(text(path)),"value":\#(value.text(&style))}"#, result)
        case 3:
            let isWithin = path.count > from.count && path.starts(with: from)
            let moved = source.flatMap { tree.removing(at: from[...])?.adding($0, at: path[...]) }
            let result = from == path ? source.map { _ in tree } : isWithin ? nil : moved
            return (#"{"op":"move","from":\#(text(from)),"path":\#(text(path))}"#, result)
        case 4:
            let result = source.flatMap { tree.adding($0, at: path[...]) }
            return (#"{"op":"copy","from":\#(text(from)),"path":\#(text(path))}"#, result)
        default:
            let tested = random.pick(from: 8) == 0 ? value : found ?? value
            return (
                #"{"op":"test","path":\#(text(path)),"value":\#(tested.text(&style))}"#, tested == found ? tree : nil
            )
        }
    }

    @Test("invalid JSON and invalid patches never crash")
    func mutations() {
        var random = RandomJSON(seed: 42)
        let marks = Array(#"{}[],:"\0e.-u 9n/~"#.utf8)
        func mutated(_ text: String) -> String {
            var bytes = Array(text.utf8)
            for _ in 0..<random.pick(from: 4) where !bytes.isEmpty {
                let at = random.pick(from: bytes.count)
                switch random.pick(from: 3) {
                case 0: bytes[at] = marks[random.pick(from: marks.count)]
                case 1: bytes.insert(marks[random.pick(from: marks.count)], at: at)
                default: bytes.remove(at: at)
                }
            }
            return String(decoding: bytes, as: UTF8.self)
        }
        var plain = TextStyle()
        for _ in 0..<5_000 {
            let old = random.value(depth: 4)
            let document = mutated(old.text(&plain))
            let new = mutated(random.changed(old).text(&plain))
            let patch = mutated(operation(on: old, &random).0)
            let result = try? JSONPatch.apply("[\(patch)]", to: document)
            if let result, JSONText.isValue(Array(document.utf8)) { #expect(JSONText.isValue(Array(result.utf8))) }
            if let patch = JSONPatch.difference(from: document, to: new) {
                let result = try? JSONPatch.apply(patch, to: document)
                if let result, JSONText.isValue(Array(document.utf8)), JSONText.isValue(Array(new.utf8)) {
                    #expect(JSONText.isValue(Array(result.utf8)))
                }
            }
        }
    }
}

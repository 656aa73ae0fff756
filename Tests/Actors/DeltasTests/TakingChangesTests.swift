import Deltas
import Testing
import TrebuchetWire

@Suite("Taking the changes of a keyed collection")
struct TakingChangesTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let change: @Sendable (inout KeyedCollection<Item>) -> Void
        /// Kind and index of each operation.
        let operations: [String]

        init(
            _ description: String, _ operations: [String],
            _ change: @escaping @Sendable (inout KeyedCollection<Item>) -> Void
        ) {
            testDescription = description
            self.operations = operations
            self.change = change
        }
    }

    static let cases: [Case] = [
        Case("nothing", []) { _ in },
        Case("an update", ["replace 1"]) { $0.update(id: 2) { $0.title = "B" } },
        Case("updates of one element", ["replace 1"]) { items in
            for number in 0..<5 { items.update(id: 2) { $0.title = "\(number)" } }
        },
        Case("updates by turns", ["replace 0", "replace 1"]) { items in
            for number in 0..<10 { items.update(id: 1 + number % 2) { $0.title = "\(number)" } }
        },
        Case("an update of an appended element", ["add 3"]) { items in
            items.append(Item(id: 4, title: ""))
            items.update(id: 4) { $0.title = "d" }
        },
        Case("an update of an appended and moved element", ["add 3", "move 3 0"]) { items in
            items.append(Item(id: 4, title: ""))
            items.move(id: 4, to: 0)
            items.update(id: 4) { $0.title = "d" }
        },
        Case("an addition and its removal", []) { items in
            items.append(Item(id: 4, title: ""))
            items.update(id: 4) { $0.title = "d" }
            items.remove(id: 4)
        },
        Case("an addition and its removal, with another change between", ["add 0", "replace 2", "remove 0"]) { items in
            items.insert(Item(id: 4, title: "d"), at: 0)
            items.update(id: 2) { $0.title = "B" }
            items.remove(id: 4)
        },
        Case("an update of an element removed afterwards", ["remove 1"]) { items in
            items.update(id: 2) { $0.title = "B" }
            items.remove(id: 2)
        },
        Case("a removed id that is added again", ["remove 0", "add 2"]) { items in
            items.remove(id: 1)
            items.append(Item(id: 1, title: "again"))
        },
        Case("moves of one element", ["move 0 1"]) { items in
            items.move(id: 1, to: 2)
            items.move(id: 1, to: 1)
        },
        Case("a move there and back", []) { items in
            items.move(id: 1, to: 2)
            items.move(id: 1, to: 0)
        },
        Case("all removed", ["replace "]) { items in
            items.update(id: 2) { $0.title = "B" }
            items.removeAll()
        },
        Case("all removed, and one added", ["replace ", "add 0"]) { items in
            items.removeAll()
            items.append(Item(id: 1, title: "new"))
        },
    ]

    @Test("changes are few, and turn the old value into the new one", arguments: cases)
    func table(_ row: Case) throws {
        let old: KeyedCollection = [Item(id: 1, title: "a"), Item(id: 2, title: "b"), Item(id: 3, title: "c")]
        var new = old
        row.change(&new)
        let taken = new.takeChanges()
        let changes = try #require(taken)
        let operations = changes.operations.map { operation in
            "\(operation.kind) "
                + ((operation.from.map { [$0] } ?? []) + [operation.path]).map { $0.joined() }.joined(separator: " ")
        }
        #expect(operations == row.operations)
        #expect(try old.applying(changes.patch) == new)
        #expect(try applies(changes.patch, from: coder.encode(old), to: coder.encode(new)))
        #expect(new.takeChanges()?.isEmpty == true)
    }

    @Test("changes of a turn have a limit, beyond which they are unknown", arguments: [10, 400])
    func limit(count: Int) throws {
        var items = KeyedCollection((0..<count).map { Item(id: $0, title: "") })
        let limit = max(64, count / 4)
        for number in 0..<limit { items.move(id: items[number % 2 == 0 ? 0 : 5].id, to: number % 2 == 0 ? 9 : 1) }
        #expect(items.takeChanges().map { Array($0.operations).count } == limit)
        for number in 0...limit { items.move(id: items[number % 2 == 0 ? 0 : 5].id, to: number % 2 == 0 ? 9 : 1) }
        #expect(items.takeChanges() == nil)
        items.update(id: 3) { $0.title = "x" }
        #expect(items.takeChanges()?.operations.map(\.kind) == [.replace])
    }

    @Test("changes that cannot be encoded are unknown")
    func unencodable() {
        struct Reading: Codable, Identifiable, Sendable {
            let id: Int
            var value: Double
        }
        var readings: KeyedCollection = [Reading(id: 1, value: 0)]
        readings.update(id: 1) { $0.value = .nan }
        var reader = ChangeReader()
        _ = reader.take(from: &readings, with: ValueCoder())
        readings.update(id: 1) { $0.value = .infinity }
        #expect(reader.take(from: &readings, with: ValueCoder()) == nil)
        readings.update(id: 1) { $0.value = 1 }
        #expect(reader.take(from: &readings, with: ValueCoder())?.isEmpty == false)
    }

    @Test("earlier changes are not taken after others were applied")
    func changesAfterApplying() throws {
        var source: KeyedCollection = [Item(id: 1, title: "a")]
        _ = source.takeChanges()
        source.append(Item(id: 2, title: "b"))
        let taken = source.takeChanges()
        let changes = try #require(taken)
        var copy: KeyedCollection = [Item(id: 1, title: "a")]
        copy.update(id: 1) { $0.title = "A" }
        try copy.apply(changes)
        let none = copy.takeChanges()
        #expect(none?.isEmpty == true)
        copy.update(id: 2) { $0.title = "B" }
        let one = copy.takeChanges()
        #expect(one?.operations.map(\.kind) == [.replace])
    }

    @Test("a reader gets only the changes after the version that it knows")
    func reader() {
        let wire = ValueCoder()
        var reader = ChangeReader()
        var items: KeyedCollection = [Item(id: 1, title: "a")]
        #expect(reader.take(from: &items, with: wire) == nil)
        #expect(reader.take(from: &items, with: wire)?.isEmpty == true)
        let older = items
        items.update(id: 1) { $0.title = "b" }
        #expect(reader.take(from: &items, with: wire)?.isEmpty == false)
        // A restored and a new collection: neither continues from the taken version.
        items = older
        #expect(reader.take(from: &items, with: wire) == nil)
        #expect(reader.take(from: &items, with: wire)?.isEmpty == true)
        items = [Item(id: 2, title: "c")]
        #expect(reader.take(from: &items, with: wire) == nil)
        // Too many, and then one.
        for number in 0..<100 {
            items.append(Item(id: 10 + number, title: ""))
        }
        #expect(reader.take(from: &items, with: wire) == nil)
        items.update(id: 2) { $0.title = "d" }
        #expect(reader.take(from: &items, with: wire)?.operations.map(\.kind) == [.replace])
        // A copy that was changed further is a successor too.
        var copy = items
        copy.append(Item(id: 3, title: ""))
        items = copy
        #expect(reader.take(from: &items, with: wire)?.operations.map(\.kind) == [.add])
    }
}

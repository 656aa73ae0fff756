import Deltas
import Testing

@Suite("Keyed collections")
struct KeyedCollectionTests {
    private let abc: KeyedCollection = [Item(id: 1, title: "a"), Item(id: 2, title: "b"), Item(id: 3, title: "c")]

    private func titles(_ items: KeyedCollection<Item>) -> String { items.map(\.title).joined() }

    @Test("elements are found by id and by index, in order")
    func finding() {
        #expect(abc.map(\.id) == [1, 2, 3])
        #expect(abc.index(id: 2) == 1)
        #expect(abc.index(id: 9) == nil)
        #expect(abc.contains(id: 3))
        #expect(!abc.contains(id: 0))
        #expect(abc[2].title == "c")
        #expect(abc[id: 1]?.title == "a")
        #expect(abc[id: 4] == nil)
        #expect(abc.last?.id == 3)
        #expect(KeyedCollection<Item>().isEmpty)
    }

    @Test("elements are added where they should be")
    func adding() {
        var items = abc
        items.append(Item(id: 4, title: "d"))
        items.insert(Item(id: 5, title: "e"), at: 0)
        items.insert(Item(id: 6, title: "f"), at: 2)
        #expect(titles(items) == "eafbcd")
        #expect(items.updateOrAppend(Item(id: 7, title: "g")) == nil)
        #expect(items.updateOrAppend(Item(id: 1, title: "A")) == Item(id: 1, title: "a"))
        #expect(titles(items) == "eAfbcdg")
        #expect(titles(abc) == "abc")
    }

    @Test("an update gives what its body gives, and keeps what a body that throws has done")
    func updating() {
        struct Stop: Error {}
        var items = abc
        #expect(
            items.update(id: 2) {
                $0.title.append("!"); return $0.title.count
            } == 2)
        #expect(items.update(id: 9) { $0.title = "never" } == nil)
        #expect(throws: Stop.self) {
            try items.update(id: 3) {
                $0.title = "half"
                throw Stop()
            }
        }
        #expect(titles(items) == "ab!half")
        #expect(items.takeChanges()?.operations.map(\.path) == [["1"], ["2"]])
    }

    @Test("the subscript by id replaces, appends and removes")
    func setting() {
        var items = abc
        items[id: 2]?.title = "B"
        items[id: 1] = nil
        items[id: 8] = nil
        items[id: 5] = Item(id: 5, title: "e")
        #expect(titles(items) == "Bce")
    }

    @Test("removing and moving keep the others in order")
    func reordering() {
        var items = abc
        #expect(items.move(id: 1, to: 2) == true)
        #expect(titles(items) == "bca")
        #expect(items.move(id: 1, to: 0) == true)
        #expect(titles(items) == "abc")
        #expect(items.move(id: 2, to: 1) == true)
        #expect(items.move(id: 9, to: 0) == false)
        #expect(items.remove(id: 2)?.title == "b")
        #expect(items.remove(id: 2) == nil)
        #expect(titles(items) == "ac")
        items.removeAll()
        #expect(items.isEmpty)
        #expect(items.index(id: 1) == nil)
    }

    @Test("equality is of elements in order, and not of what happened")
    func equality() {
        var changed = abc
        changed.update(id: 1) { $0.title = "x" }
        #expect(changed != abc)
        changed.update(id: 1) { $0.title = "a" }
        #expect(changed == abc)
        changed.move(id: 1, to: 1)
        #expect(changed != abc)
        let numbers = KeyedCollection((0..<100).map(Number.init))
        #expect(Set([numbers, KeyedCollection(Array(numbers)), []]).count == 2)
    }

    private struct Number: Codable, Sendable, Identifiable, Hashable {
        let id: Int
    }

    @Test("the JSON is an array")
    func coding() throws {
        let json = try coder.encode(abc)
        #expect(String(decoding: json, as: UTF8.self).hasPrefix("[{"))
        #expect(try coder.decode([Item].self, String(decoding: json, as: UTF8.self)) == Array(abc))
        let decoded = try coder.decode(KeyedCollection<Item>.self, String(decoding: json, as: UTF8.self))
        #expect(decoded == abc)
        #expect(decoded.index(id: 3) == 2)
    }

    @Test("an array with an id twice does not decode")
    func repeatedID() {
        let json = #"[{"id":1,"title":"a","isDone":false},{"id":1,"title":"b","isDone":false}]"#
        let error = #expect(throws: (any Error).self) { try coder.decode(KeyedCollection<Item>.self, json) }
        #expect("\(error!)".contains("two elements have the id 1"))
    }

    @Test("a misuse ends the program: an id twice, another id, an index that is none")
    func traps() async {
        await #expect(processExitsWith: .failure) {
            var items: KeyedCollection = [Item(id: 1, title: "a")]
            items.append(Item(id: 1, title: "b"))
        }
        await #expect(processExitsWith: .failure) {
            struct Other: Codable, Identifiable { var id: Int }
            var items: KeyedCollection = [Other(id: 1)]
            items.update(id: 1) { $0.id = 2 }
        }
        await #expect(processExitsWith: .failure) {
            var items: KeyedCollection = [Item(id: 1, title: "a")]
            items[id: 2] = Item(id: 1, title: "b")
        }
        await #expect(processExitsWith: .failure) {
            var items: KeyedCollection = [Item(id: 1, title: "a")]
            items.move(id: 1, to: 1)
        }
    }
}

import Deltas
import Platform
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

    @Test("elements are added at the given index")
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

    @Test("an update returns its body's result, and keeps the changes of a body that throws")
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

    @Test("equality compares elements in order, not the history")
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

    @Test("an array with a repeated id does not decode")
    func repeatedID() {
        let json = #"[{"id":1,"title":"a","isDone":false},{"id":1,"title":"b","isDone":false}]"#
        let error = #expect(throws: (any Error).self) { try coder.decode(KeyedCollection<Item>.self, json) }
        #expect("\(error!)".contains("two elements have the id 1"))
    }

    @Test("the first of two elements with one id is kept: in an initializer, a literal, and in additions")
    func duplicates() {
        let twice = [Item(id: 1, title: "a"), Item(id: 2, title: "b"), Item(id: 1, title: "c")]
        #expect(titles(KeyedCollection(twice)) == "ab")
        #expect(titles([Item(id: 1, title: "a"), Item(id: 1, title: "b")]) == "a")
        var items = abc
        let appended = items.append(Item(id: 2, title: "x"))
        #expect(!appended.inserted && appended.index == 1)
        let inserted = items.insert(Item(id: 3, title: "x"), at: 0)
        #expect(!inserted.inserted && inserted.index == 2)
        #expect(items == abc)
        #expect(items.takeChanges()?.isEmpty == true)
        let new = items.append(Item(id: 4, title: "d"))
        #expect(new.inserted && new.index == 3)
    }

    @Test("an index out of range from a client is clamped", arguments: [Int.min, -1, 3, 4, Int.max])
    func indices(index: Int) {
        var items = abc
        items.insert(Item(id: 4, title: "d"), at: index)
        #expect(titles(items) == (index < 0 ? "dabc" : "abcd"))
        #expect(items.move(id: 2, to: index) == true)
        #expect(items.index(id: 2) == (index < 0 ? 0 : 3))
        var none = KeyedCollection<Item>()
        #expect(none.move(id: 1, to: index) == false)
    }

    /// An element whose id can be changed.
    private struct Renamed: Codable, Sendable, Identifiable, Equatable {
        var id: Int
        var title = ""
    }

    @Test("an element set under the id of another has its own id from then on")
    func setByAnotherID() {
        var items = KeyedCollection([Renamed(id: 1), Renamed(id: 2), Renamed(id: 3)])
        items[id: 2] = Renamed(id: 5, title: "x")
        #expect(items.map(\.id) == [1, 5, 3])
        items[id: 3] = Renamed(id: 1, title: "y")
        #expect(items.map(\.id) == [1, 5])
        items[id: 9] = Renamed(id: 5, title: "z")
        #expect(items.map(\.title) == ["", "x"])
    }

    @Test("elements with ids changed in place are found by them, and the whole value is sent")
    func renaming() throws {
        struct Stop: Error {}
        var random = RandomSource(seed: 11)
        var items = KeyedCollection((0..<300).map { Renamed(id: $0) })
        var model = Array(items)
        let copy = items
        for round in 0..<2_000 {
            let place = Int.random(in: model.indices, using: &random)
            let new = Int.random(in: 0..<400, using: &random)
            let old = model[place].id
            try? items.update(id: old) {
                $0 = Renamed(id: new, title: "\(round)")
                if round % 7 == 0 { throw Stop() }
            }
            model[place] = Renamed(id: new, title: "\(round)")
            if let other = model.indices.first(where: { $0 != place && model[$0].id == new }) {
                model.remove(at: max(place, other))
            }
            let changes = items.takeChanges()
            #expect((changes == nil) == (old != new))
            if model.count < 200 {
                items.append(Renamed(id: 1_000 + round))
                model.append(Renamed(id: 1_000 + round))
            }
        }
        #expect(Array(items) == model)
        #expect(model.enumerated().allSatisfy { items.index(id: $1.id) == $0 })
        #expect(copy.map(\.id) == Array(0..<300) && copy.index(id: 299) == 299)
    }
}

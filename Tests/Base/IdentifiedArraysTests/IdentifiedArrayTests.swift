import Foundation
import IdentifiedArrays
import Testing

struct IdentifiedArrayTests {
    private typealias Items = IdentifiedArrayOf<Numbered>

    private func items(_ ids: Int...) -> Items { Items(uniqueElements: ids.map { Numbered(id: $0) }) }

    /// True if each element is found by its id at its index.
    private func isConsistent(_ items: Items) -> Bool {
        items.indices.allSatisfy { items.index(id: items[$0].id) == $0 && items[id: items[$0].id] == items[$0] }
    }

    @Test("an id occurs at most once: appending and inserting keep existing elements")
    func unique() {
        var items = items(1, 2)
        let outcomes = [
            items.append(Numbered(id: 1, text: "new")),
            items.insert(Numbered(id: 2, text: "new"), at: 0),
            items.append(Numbered(id: 3)),
            items.insert(Numbered(id: 4), at: 0),
        ]
        #expect(outcomes.map(\.inserted) == [false, false, true, true])
        #expect(outcomes.map(\.index) == [0, 1, 2, 0])
        #expect(items.ids == [4, 1, 2, 3])
        #expect(items.allSatisfy { $0.text.isEmpty })
    }

    @Test("updateOrAppend replaces in place and returns the previous element")
    func updateOrAppend() {
        var items = items(1, 2)
        let replaced = items.updateOrAppend(Numbered(id: 1, text: "new"))
        let none = items.updateOrAppend(Numbered(id: 3))
        #expect(replaced == Numbered(id: 1))
        #expect(none == nil)
        #expect(items.ids == [1, 2, 3])
        #expect(items[0].text == "new")
    }

    @Test("the subscript by id changes, appends and removes")
    func byID() {
        var items = items(1, 2)
        items[id: 2]?.text = "two"
        items[id: 3] = Numbered(id: 3)
        items[id: 1] = nil
        items[id: 7] = nil
        #expect(items == [Numbered(id: 2, text: "two"), Numbered(id: 3)])
        #expect(items[id: 9] == nil)
    }

    @Test("for elements with one id, the initializer keeps the chosen one at the position of the first")
    func uniquing() {
        let elements = [Numbered(id: 1, text: "a"), Numbered(id: 2), Numbered(id: 1, text: "b")]
        #expect(Items(elements) { first, _ in first }.map(\.text) == ["a", ""])
        #expect(Items(elements) { _, second in second }.map(\.text) == ["b", ""])
    }

    @Test("after any changes it has the same elements as an array, each found by its id", arguments: 0..<20)
    func model(seed: UInt64) {
        var random = Generator(state: seed + 1)
        var items = Items()
        var model: [Numbered] = []
        for step in 0..<200 {
            let element = Numbered(id: Int.random(in: 0..<20, using: &random), text: "\(step)")
            let place = Int.random(in: 0...model.count, using: &random)
            let present = model.firstIndex { $0.id == element.id }
            switch Int.random(in: 0..<8, using: &random) {
            case 0:
                items.append(element)
                if present == nil { model.append(element) }
            case 1:
                items.insert(element, at: place)
                if present == nil { model.insert(element, at: place) }
            case 2:
                items.updateOrAppend(element)
                if let present { model[present] = element } else { model.append(element) }
            case 3:
                items.remove(id: element.id)
                model.removeAll { $0.id == element.id }
            case 4 where place < model.count:
                let other = Int.random(in: 0..<model.count, using: &random)
                items.move(from: place, to: other)
                model.insert(model.remove(at: place), at: other)
            case 5 where place < model.count:
                let other = Int.random(in: 0..<model.count, using: &random)
                items.swapAt(place, other)
                model.swapAt(place, other)
            case 6:
                items.sort { $0.id < $1.id }
                model.sort { $0.id < $1.id }
            case 7:
                items.removeAll { $0.id % 7 == step % 7 }
                model.removeAll { $0.id % 7 == step % 7 }
            default: break
            }
            #expect(items.elements == model)
            #expect(isConsistent(items))
            guard items.elements == model else { return }
        }
    }

    @Test("it is coded as an array")
    func coding() throws {
        let data = try JSONEncoder().encode(items(2, 1))
        #expect(try JSONDecoder().decode([Numbered].self, from: data).map(\.id) == [2, 1])
        #expect(try JSONDecoder().decode(Items.self, from: data) == items(2, 1))
    }

    @Test("an array with a repeated id cannot be decoded")
    func decodingDuplicates() throws {
        let data = try JSONEncoder().encode([Numbered(id: 1), Numbered(id: 1)])
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(Items.self, from: data) }
    }

    @Test("equality and hash are those of the elements in order")
    func equality() {
        #expect(items(1, 2) == items(1, 2))
        #expect(items(1, 2) != items(2, 1))
        #expect(Set([items(1, 2), items(1, 2), items(2, 1)]).count == 2)
    }

    @Test("changing an element in place does not copy the others")
    func inPlace() {
        var items = items(1, 2)
        let before = items.elements.withUnsafeBufferPointer { $0.baseAddress }
        items[0].text = "new"
        #expect(items.elements.withUnsafeBufferPointer { $0.baseAddress } == before)
        #expect(items[id: 1]?.text == "new")
    }

    @Test("an element whose id changes in place is found by its new id")
    func changedID() {
        var items = items(1, 2)
        items[0].id = 3
        items[id: 2]?.id = 4
        #expect(items.ids == [3, 4])
        #expect(isConsistent(items))
        #expect(items[id: 1] == nil && items[id: 2] == nil)
        items[id: 4] = Numbered(id: 5)
        items[id: 9] = Numbered(id: 6)
        items[id: 9] = Numbered(id: 6, text: "later")
        #expect(items == [Numbered(id: 3), Numbered(id: 5), Numbered(id: 6)])
        #expect(isConsistent(items))
    }

    @Test("the first of two elements with one id stays, whatever made them equal")
    func firstOfEquals() {
        let elements = [Numbered(id: 3), Numbered(id: 1), Numbered(id: 3, text: "later"), Numbered(id: 7)]
        #expect(Items(uniqueElements: elements).elements == [elements[0], elements[1], elements[3]])
        let literal: Items = [Numbered(id: 1), Numbered(id: 1, text: "later")]
        #expect(literal.elements == [Numbered(id: 1)])

        for (changed, other) in [(0, 2), (2, 0)] {
            var items = Items(uniqueElements: [1, 2, 3, 4].map { Numbered(id: $0, text: "\($0)") })
            items[changed].id = items[other].id
            let id = changed == 0 ? 3 : 1
            #expect(items.elements.first == Numbered(id: id, text: "1"))
            #expect(items.ids == [id, 2, 4])
            #expect(isConsistent(items))
        }
    }

    @Test("sorting that fails leaves all elements findable")
    func failedSort() {
        struct Refusal: Error {}
        var items = items(3, 1, 2)
        #expect(throws: Refusal.self) {
            try items.sort { first, second in
                if first.id == 2 || second.id == 2 { throw Refusal() }
                return first.id < second.id
            }
        }
        #expect(Set(items.ids) == [1, 2, 3])
        #expect(isConsistent(items))
    }

    @Test("it is described as its elements")
    func text() {
        #expect("\(items(1))" == "\([Numbered(id: 1)])")
        #expect(
            Mirror(reflecting: items(1, 2)).children.map { $0.value as? Numbered } == [
                Numbered(id: 1), Numbered(id: 2),
            ])
    }
}

private struct Numbered: Identifiable, Codable, Hashable, Sendable {
    var id: Int
    var text = ""
}

/// Reproducible numbers for a seed.
private struct Generator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state ^ (state >> 33)
    }
}

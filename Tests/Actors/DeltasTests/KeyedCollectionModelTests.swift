import Deltas
import Platform
import Testing

@Suite("Keyed collections compared with a plain array")
struct KeyedCollectionModelTests {
    /// A collection beside the array that it must equal.
    private struct Pair {
        var items = KeyedCollection<Item>()
        var model: [Item] = []
        var random: RandomSource
        var nextID = 0
        /// The target size: above it fewer elements are added, below it fewer removed.
        var size: Int

        mutating func change() {
            let id = model.randomElement(using: &random)?.id
            // A frequent insertion index, or any.
            let index = Int.random(in: 0..<3, using: &random) == 0 ? model.count / 3 : place(model.count + 1)
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<4 where model.count < size + place(size), 0..<2:
                insert(at: index)
            case 4, 5:
                guard let id, let present = model.firstIndex(where: { $0.id == id }) else { return }
                #expect(
                    items.update(id: id) {
                        $0.title += "+"; return $0.id
                    } == id)
                model[present].title += "+"
            case 6:
                guard let id, let present = model.firstIndex(where: { $0.id == id }) else { return }
                let to = place(model.count)
                items.move(id: id, to: to)
                model.insert(model.remove(at: present), at: to)
            case 7:
                let item = Item(id: place(nextID + 2), title: "set")
                if let present = model.firstIndex(where: { $0.id == item.id }) {
                    #expect(items.updateOrAppend(item) == model[present])
                    model[present] = item
                } else {
                    #expect(items.updateOrAppend(item) == nil)
                    model.append(item)
                    nextID = max(nextID, item.id + 1)
                }
            default:
                guard let id, let present = model.firstIndex(where: { $0.id == id }) else { return }
                #expect(items.remove(id: id) == model.remove(at: present))
            }
        }

        mutating func insert(at index: Int) {
            let item = Item(id: nextID, title: "\(nextID)")
            nextID += 1
            items.insert(item, at: index)
            model.insert(item, at: index)
        }

        mutating func place(_ count: Int) -> Int { Int.random(in: 0..<max(count, 1), using: &random) }

        mutating func check() throws {
            #expect(Array(items) == model)
            for (index, item) in model.enumerated() {
                try #require(items.index(id: item.id) == index)
                try #require(items[index] == item)
            }
            #expect(!items.contains(id: nextID + 5))
        }
    }

    @Test("random operations have the same effect on a collection as on an array", arguments: [0, 3, 20, 300, 3_000])
    func model(size: Int) throws {
        var pair = Pair(random: RandomSource(seed: UInt64(size)), size: size)
        for round in 0..<20 {
            for _ in 0..<500 { pair.change() }
            try pair.check()
            // Also from a tree that was built at once.
            if round == 10 { pair.items = KeyedCollection(pair.model) }
        }
    }

    @Test("taken changes turn the old value and its JSON into the new ones", arguments: 0..<8)
    func changes(seed: Int) throws {
        var pair = Pair(random: RandomSource(seed: UInt64(seed)), size: [2, 10, 60, 200][seed % 4])
        for _ in 0..<pair.size { pair.insert(at: pair.place(pair.model.count + 1)) }
        var copy = pair.items
        var json = try coder.encode(copy)
        _ = pair.items.takeChanges()
        for round in 0..<400 {
            for _ in 0...pair.place(20) { pair.change() }
            if round % 50 == 49 { pair.items.removeAll(); pair.model = [] }
            let taken = pair.items.takeChanges()
            let changes = try #require(taken)
            let new = try coder.encode(pair.items)
            copy = try copy.applying(changes.patch)
            #expect(Array(copy) == pair.model)
            #expect(try applies(changes.patch, from: json, to: new))
            json = new
        }
        try pair.check()
    }

    @Test("retained copies stay unchanged")
    func retainedCopies() throws {
        var pair = Pair(random: RandomSource(seed: 77), size: 200)
        var copies: [(KeyedCollection<Item>, [Item])] = []
        for _ in 0..<200 {
            for _ in 0..<20 { pair.change() }
            copies.append((pair.items, pair.model))
        }
        for (items, model) in copies {
            #expect(Array(items) == model)
            #expect(model.enumerated().allSatisfy { items.index(id: $1.id) == $0 })
        }
        // Changed copies are independent.
        for number in copies.indices {
            let id = 1_000_000 + number
            copies[number].0.insert(Item(id: id, title: ""), at: copies[number].0.count / 2)
            #expect(copies[number].0.count == copies[number].1.count + 1)
            #expect(!pair.items.contains(id: id))
        }
        try pair.check()
    }

    @Test("ten thousand insertions at one index, at the start and at the end keep the order")
    func samePosition() throws {
        for place in 0..<4 {
            var items = KeyedCollection((0..<100).map { Item(id: -1 - $0, title: "") })
            var model = Array(items)
            for number in 0..<10_000 {
                let index = [0, items.count, 50, 50 + number][place]
                items.insert(Item(id: number, title: ""), at: index)
                model.insert(Item(id: number, title: ""), at: index)
            }
            #expect(Array(items) == model)
            #expect(model.enumerated().allSatisfy { items.index(id: $1.id) == $0 })
            for number in stride(from: 0, to: 10_000, by: 2) { items.remove(id: number) }
            model.removeAll { $0.id >= 0 && $0.id % 2 == 0 }
            #expect(Array(items) == model)
            #expect(model.enumerated().allSatisfy { items.index(id: $1.id) == $0 })
        }
    }

    @Test("ids with equal hashes are distinguished")
    func collisions() {
        struct CollidingItem: Codable, Sendable, Identifiable {
            struct ID: Codable, Sendable, Hashable {
                let number: Int
                func hash(into hasher: inout Hasher) {}
            }
            let id: ID
            var title = ""
        }
        var items = KeyedCollection((0..<100).map { CollidingItem(id: .init(number: $0)) })
        for number in stride(from: 0, to: 100, by: 3) { items.remove(id: .init(number: number)) }
        for number in 100..<200 { items.insert(CollidingItem(id: .init(number: number)), at: number - 90) }
        items.update(id: .init(number: 50)) { $0.title = "x" }
        #expect(items.filter { $0.title == "x" }.map(\.id.number) == [50])
        #expect(items.indices.allSatisfy { items.index(id: items[$0].id) == $0 })
        #expect(!items.contains(id: .init(number: 3)))
    }
}

import Trebuchet

/// Shows large states and persists nothing: its calls run in place.
@Trebuchet
distributed actor LargeStateActor {
    struct Cells: Codable, Sendable, Equatable {
        var numbers = [Int](repeating: 0, count: 100)
        var filling = ""
    }

    struct Item: Codable, Sendable, Identifiable, Equatable {
        let id: Int
        var title: String
    }

    @StreamedState var cells: Cells = Cells()
    @StreamedState var items: KeyedCollection<Item> = []
    @StreamedState(delivery: .every(buffer: 64)) var steps: Int = 0
    @StreamedEvents var marks: Int

    distributed func set(_ place: Int, _ number: Int) -> Int {
        cells.numbers[place] = number
        return number
    }
    distributed func fill(_ bytes: Int) { cells.filling = String(repeating: "x", count: bytes) }
    distributed func put(_ id: Int, _ title: String) -> Int {
        items[id: id] = Item(id: id, title: title)
        return items.count
    }
    distributed func step() -> Int {
        steps += 1
        return steps
    }
    distributed func mark(_ number: Int) -> Int {
        $marks.send(number)
        return number
    }
}

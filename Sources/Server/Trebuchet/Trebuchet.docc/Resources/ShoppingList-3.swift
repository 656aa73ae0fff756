import Trebuchet

struct Item: Codable, Sendable, Equatable {
    var name: String
    var isBought = false
}

struct NoSuchItem: Error, Codable, Sendable {
    var name: String
}

@Trebuchet
distributed actor ShoppingList {
    struct State: Codable, Sendable { var items: [Item] = [] }
    @StreamedState var state: State = State()

    distributed func add(_ name: String) {
        state.items.append(Item(name: name))
    }

    distributed func buy(_ name: String) throws(NoSuchItem) {
        guard let index = state.items.firstIndex(where: { $0.name == name && !$0.isBought }) else {
            throw NoSuchItem(name: name)
        }
        state.items[index].isBought = true
    }
}

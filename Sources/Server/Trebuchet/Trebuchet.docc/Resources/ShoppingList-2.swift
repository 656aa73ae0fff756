import Trebuchet

struct Item: Codable, Sendable, Equatable {
    var name: String
    var isBought = false
}

@Trebuchet
distributed actor ShoppingList {
    struct State: Codable, Sendable { var items: [Item] = [] }
    @StreamedState var state: State = State()
}

public import TrebuchetClient

/// A dish on the menu.
public struct Dish: Codable, Sendable, Hashable {
    public var name: String
    public var price: Int

    public init(name: String, price: Int) {
        self.name = name
        self.price = price
    }
}

/// The error for a dish that is sold out.
public struct SoldOut: Error, Codable, Sendable, Equatable {
    public var dish: String

    public init(dish: String) { self.dish = dish }
}

/// A kitchen that receives orders of several desks.
@Trebuchet
public distributed actor Kitchen {
    /// An order of a table.
    public struct Order: Codable, Sendable, Equatable {
        public var dish: String
        public var table: Int
        public var isServed = false
    }
    /// The state that desks observe.
    public struct State: Codable, Sendable, Equatable { public var orders: [Order] = [] }
    @StreamedState public var state: State = State()
    private var stock = ["Soup": 2, "Salad": 5, "Sole": 1]

    public init(actorSystem: TrebuchetActorSystem) { self.actorSystem = actorSystem }

    /// Returns the menu of the day.
    public distributed func menu() -> [Dish] {
        [Dish(name: "Salad", price: 6), Dish(name: "Sole", price: 19), Dish(name: "Soup", price: 5)]
    }

    /// Places an order and returns its number, counted from 1. An order that is repeated over a new connection is placed once.
    @Idempotent
    public distributed func order(dish: String, table: Int) throws(SoldOut) -> Int {
        guard let left = stock[dish], left > 0 else { throw SoldOut(dish: dish) }
        stock[dish] = left - 1
        state.orders.append(Order(dish: dish, table: table))
        return state.orders.count
    }

    /// Marks an order as served; ignores an unknown number.
    public distributed func serve(number: Int) {
        if state.orders.indices.contains(number - 1) { state.orders[number - 1].isServed = true }
    }
}

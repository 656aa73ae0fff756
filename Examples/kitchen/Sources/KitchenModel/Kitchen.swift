public import TrebuchetClient

/// Something to eat.
public struct Dish: Codable, Sendable, Hashable {
    public var name: String
    public var price: Int

    public init(name: String, price: Int) {
        self.name = name
        self.price = price
    }
}

/// There is none left.
public struct SoldOut: Error, Codable, Sendable, Equatable {
    public var dish: String

    public init(dish: String) { self.dish = dish }
}

/// A kitchen that several desks send orders to.
@Trebuchet
public distributed actor Kitchen {
    public struct Order: Codable, Sendable, Equatable {
        public var dish: String
        public var table: Int
        public var isServed = false
    }
    public struct State: Codable, Sendable, Equatable { public var orders: [Order] = [] }
    @StreamedState public var state: State = State()
    private var stock = ["Soup": 2, "Salad": 5, "Sole": 1]

    public init(actorSystem: TrebuchetActorSystem) { self.actorSystem = actorSystem }

    /// What there is today.
    public distributed func menu() -> [Dish] {
        [Dish(name: "Salad", price: 6), Dish(name: "Sole", price: 19), Dish(name: "Soup", price: 5)]
    }

    /// Takes an order; the number is its place, counted from 1. An order that is repeated over a new connection is taken once.
    @Idempotent
    public distributed func order(dish: String, table: Int) throws(SoldOut) -> Int {
        guard let left = stock[dish], left > 0 else { throw SoldOut(dish: dish) }
        stock[dish] = left - 1
        state.orders.append(Order(dish: dish, table: table))
        return state.orders.count
    }

    /// Brings an order to its table; one that is not there is left out.
    public distributed func serve(number: Int) {
        if state.orders.indices.contains(number - 1) { state.orders[number - 1].isServed = true }
    }
}

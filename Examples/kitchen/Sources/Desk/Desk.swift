public import KitchenModel
public import Loading
public import Observation
public import SharedState
public import StateMachines
public import TrebuchetClient

/// What a desk remembers.
public struct Settings: Codable, Equatable, Sendable {
    public var table = 1

    public init() {}
}

/// All that a desk shows, each part by what it is made for.
@MainActor @Observable
public final class Desk {
    /// What others change as well: the server sends each new state.
    @ObservationIgnored @ObservedActor("kitchen", observe: \Kitchen.observeState) public var kitchen
    /// What outlasts the program, and is changed in several places.
    @ObservationIgnored @Shared public var settings: Settings
    /// What is asked for once, takes time and may fail.
    @ObservationIgnored public let menu: RetryableLoader<BlockLoadable<[Dish]>>
    /// What is made of several values that change by themselves.
    @ObservationIgnored public let search: Search
    /// What has rules.
    @ObservationIgnored public let ordering: Runtime<Ordering>
    private var found: [Dish] = []

    public init(client: TrebuchetClient, settings: Shared<Settings>, search: Search) throws {
        let kitchen = try client.resolve(Kitchen.self, id: "kitchen")
        _settings = settings
        self.search = search
        menu = RetryableLoader(wrapping: BlockLoadable { try await kitchen.menu() })
        ordering = Store.make(initialState: .idle) {
            Ordering()
        } withDependencies: {
            $0.orders = OrderClient { dish, table in try await kitchen.order(dish: dish, table: table) }
        }
        $kitchen.connect(client)
    }

    /// Loads the menu, and keeps what was found on the screen, until the task is cancelled.
    public func run() async {
        await menu.load()
        await search.dishes.set(menu.currentState.value ?? [])
        for await dishes in search.found.stream { found = dishes }
    }

    public func order(_ dish: String) { ordering.send(.order(dish: dish, table: settings.table)) }

    public func serve(_ number: Int) async throws { try await $kitchen.actor?.serve(number: number) }

    /// The view: lines of text for what there is at this moment.
    public var body: [String] {
        ["Table \(settings.table)"] + menuLines + orderLines + orderingLines
    }

    private var menuLines: [String] {
        switch menu.currentState {
        case .idle: []
        case .loading(let progress): [progress?.message ?? "The menu comes …"]
        case .failure(let error): ["No menu: \(error)"]
        case .loaded: found.isEmpty ? ["Nothing found"] : found.map { "  \($0.name) \($0.price) €" }
        }
    }

    private var orderLines: [String] {
        guard let orders = kitchen?.orders else { return [$kitchen.error.map { "\($0)" } ?? "The kitchen is far …"] }
        return orders.enumerated().map { number, order in
            "  \(order.isServed ? "✓" : "•") \(number + 1). \(order.dish) for table \(order.table)"
        }
    }

    private var orderingLines: [String] {
        switch ordering.state {
        case .idle: []
        case .sending(let dish): ["\(dish) is ordered …"]
        case .taken(let number): ["That is number \(number)."]
        case .refused(let reason): ["Not to be had: \(reason)"]
        }
    }
}

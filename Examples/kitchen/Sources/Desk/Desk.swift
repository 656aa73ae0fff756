public import KitchenModel
public import Loading
public import Observation
public import SharedState
public import StateMachines
public import TrebuchetClient

/// The persisted settings of a desk.
public struct Settings: Codable, Equatable, Sendable {
    public var table = 1

    public init() {}
}

/// The model of a desk; each property uses the library that fits its kind of data.
@MainActor @Observable
public final class Desk {
    /// State that other clients change too: the server sends each new state.
    @ObservationIgnored @ObservedActor("kitchen", observe: \Kitchen.observeState) public var kitchen
    /// Persisted state that several places change.
    @ObservationIgnored @Shared public var settings: Settings
    /// Data that is loaded once, takes time and may fail.
    @ObservationIgnored public let menu: RetryableLoader<BlockLoadable<[Dish]>>
    /// A result derived from several values that change independently.
    @ObservationIgnored public let search: Search
    /// A process with rules.
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

    /// Loads the menu, and updates the search results, until the task is cancelled.
    public func run() async {
        await menu.load()
        await search.dishes.set(menu.currentState.value ?? [])
        for await dishes in search.found.stream { found = dishes }
    }

    public func order(_ dish: String) { ordering.send(.order(dish: dish, table: settings.table)) }

    public func serve(_ number: Int) async throws { try await $kitchen.actor?.serve(number: number) }

    /// The view: the current contents as lines of text.
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

public import KitchenModel
public import QStream
public import Relays

/// The dishes that match a search text: two inputs, one of them debounced, and one output.
public struct Search: Sendable {
    /// The search text, as it is typed.
    public let text = Subject(value: "")
    /// The dishes to search.
    public let dishes = Subject<[Dish]>(value: [])
    /// The newest result, which a view reads without waiting.
    public let found: StateRelay<[Dish]>

    /// - Parameter quiet: the time without input after which the search runs.
    public init(quiet: Duration = .milliseconds(200), clock: any Clock<Duration> = ContinuousClock()) async {
        let typed = await text.debounce(for: quiet, clock: clock)
        found = await typed.combineLatest(dishes)
            .map { text, dishes in
                dishes.filter { text.isEmpty || $0.name.lowercased().hasPrefix(text.lowercased()) }
            }
            .removeDuplicates()
            .relay(initialValue: [])
    }
}

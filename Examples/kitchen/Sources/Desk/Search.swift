public import KitchenModel
public import QStream
public import Relays

/// The dishes that match what is looked for: two inputs, one of them in a hurry, and one output.
public struct Search: Sendable {
    /// What is looked for, as it is typed.
    public let text = Subject(value: "")
    /// What there is to look in.
    public let dishes = Subject<[Dish]>(value: [])
    /// What a view reads: the newest result, without waiting.
    public let found: StateRelay<[Dish]>

    /// - Parameter quiet: how long nobody must type before it looks.
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

import Synchronization

/// Draws the scenarios of a run: group after group, each from the seed and its number alone.
final class ScenarioSource: Sendable {
    private struct State {
        var group = 0
        var waiting: [Scenario] = []
        var count = 0
        var end = ContinuousClock.now
    }

    private let families: [Family]
    private let seed: UInt64
    private let isTLS: Bool
    private let state = Mutex(State())

    init(_ options: Options) {
        families = options.families
        seed = options.seed
        isTLS = options.isTLS
    }

    /// The number of started scenarios.
    var count: Int { state.withLock { $0.count } }

    /// The number of the last drawn group.
    var group: Int { state.withLock { $0.group } }

    /// Provides scenarios until `end`; those of a partly started group are dropped.
    func open(until end: ContinuousClock.Instant) {
        state.withLock { state in
            state.end = end
            state.waiting = []
        }
    }

    func next() -> Scenario? {
        state.withLock { state in
            guard ContinuousClock.now < state.end else { return nil }
            while state.waiting.isEmpty {
                state.group += 1
                var dice = Dice(seed: seed, group: state.group)
                let family = dice.pick(families)
                state.waiting = family.scenarios(&dice, isTLS: isTLS).reversed()
            }
            state.count += 1
            return state.waiting.removeLast()
        }
    }
}

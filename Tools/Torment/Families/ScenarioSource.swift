import Synchronization

/// Draws the courses of a run: group after group, each from the seed and its number alone.
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

    /// How many courses were begun.
    var count: Int { state.withLock { $0.count } }

    /// The number of the group that was drawn last.
    var group: Int { state.withLock { $0.group } }

    /// From now on courses come until `end`; those of a group that was not begun whole are forgotten.
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
                state.waiting = family.courses(&dice, isTLS: isTLS).reversed()
            }
            state.count += 1
            return state.waiting.removeLast()
        }
    }
}

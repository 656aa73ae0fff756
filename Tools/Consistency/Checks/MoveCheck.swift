/// Checks the events of a reader: each event once, in order, except for gaps that `overflow` reports. Pure.
struct MoveCheck {
    /// The party that reported missed events.
    enum Overflow: Equatable {
        /// The reader's own queue was full.
        case ofReader
        /// The server: the connection was too slow or interrupted too long, or the server was restarted.
        case ofServer
    }

    /// Whether a call without a record may run again at another owner of the game.
    let mayRunAgain: Bool
    private var life = 0
    private var number = 0
    private var ended: Set<Int> = []
    /// The `@Idempotent` calls that events told of.
    private(set) var calls: Set<Int> = []
    private var callsOfLife: Set<Int> = []
    /// Whether a stream has started and has no event yet.
    private var isFirst = true
    private var overflow: Overflow?
    private(set) var count = 0
    private(set) var bytes = 0
    /// Overflows that a new life of the server is the reason of, and the others.
    private(set) var overflowsOfNewIncarnations = 0
    private(set) var overflowsOfReaders = 0
    private(set) var overflowsOfConnections = 0

    init(mayRunAgain: Bool) { self.mayRunAgain = mayRunAgain }

    /// The stream ended with `overflow`, and another one is begun.
    mutating func overflowed(_ kind: Overflow) {
        (isFirst, overflow) = (true, kind)
    }

    mutating func take(_ move: Move) -> String? {
        defer {
            (life, number, isFirst, overflow) = (move.life, move.number, false, nil)
            count += 1
            bytes += move.padding.utf8.count
        }
        if move.life != life { callsOfLife = [] }
        let isFirstTime = calls.insert(move.call).inserted || mayRunAgain
        if move.call > 0, !callsOfLife.insert(move.call).inserted || !isFirstTime {
            return "call \(move.call) has sent two events"
        }
        if move.life != life {
            let before = life
            ended.insert(before)
            if ended.contains(move.life) { return "the events went back to a life that had ended" }
            if !isFirst { return "event \(move.number) of another life came after \(number), and no overflow between" }
            if overflow != nil { overflowsOfNewIncarnations += 1 }
            return nil
        }
        guard isFirst else {
            return move.number == number + 1 ? nil : "event \(move.number) came after \(number)"
        }
        if move.number <= number { return "event \(move.number) came after \(number), in a stream that began later" }
        let missed = move.number - number - 1
        switch overflow {
        case nil: return nil
        case .ofReader:
            overflowsOfReaders += 1
            return missed > 0 ? nil : "an overflow was reported, but no event was missed after \(number)"
        case .ofServer:
            overflowsOfConnections += 1
            if missed > Game.eventBuffer { return nil }
            return "the server reported an overflow after \(number), but only \(missed) events were missed"
        }
    }

    var description: String { "event \(number) of life \(life)" }
}

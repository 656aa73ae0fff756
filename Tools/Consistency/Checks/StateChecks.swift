// Checks of the states of a reader. Each check receives the values in order and returns the error of one, or nil. Pure.

/// Checks the ledger, which is persisted before it is published, so it never goes back, even after a restart.
struct LedgerCheck {
    /// How often it may go back to what an engine has not lost.
    private var steps: StepsBack
    private var last = TransferLedger()

    init(_ steps: StepsBack = .none) { self.steps = steps }

    mutating func take(_ ledger: TransferLedger) -> String? {
        defer { last = ledger }
        if !ledger.isWhole { return "a ledger of \(ledger.calls.count) calls whose points are of another one" }
        if ledger.calls.starts(with: last.calls) || steps.use() { return nil }
        if ledger.calls.count < last.calls.count {
            return "the ledger went back from \(last.calls.count) calls to \(ledger.calls.count)"
        }
        return "calls that were in the ledger have changed"
    }

    var description: String { "\(last.calls.count) calls" }
}

/// The board goes forward within each life.
struct BoardCheck {
    private var life = 0
    private var turn = -1
    private var ended: Set<Int> = []

    mutating func take(_ board: VersionedBoardState) -> String? {
        if !board.isWhole { return "a board of turn \(board.turn) whose cells are of another one" }
        if board.life != life {
            ended.insert(life)
            if ended.contains(board.life) { return "the board went back to a life that had ended" }
            (life, turn) = (board.life, board.turn)
            return nil
        }
        defer { turn = board.turn }
        if board.turn < turn { return "the board went back from turn \(turn) to \(board.turn)" }
        if board.turn == turn { return "the board came twice with turn \(turn)" }
        return nil
    }

    var description: String { "turn \(turn) of life \(life)" }
}

/// Each round comes, within each life and as long as its stream lasts.
struct RoundCheck {
    /// How often an engine may lose some: then the value that is left comes whole.
    private var steps: StepsBack
    private var life = 0
    private var number = -1
    private var ended: Set<Int> = []
    /// Whether the stream has just restarted after an `overflow`.
    private var isAfterOverflow = false
    private(set) var count = 0

    init(_ steps: StepsBack = .none) { self.steps = steps }

    mutating func overflowed() { isAfterOverflow = true }

    mutating func take(_ round: Round) -> String? {
        defer { (life, number, isAfterOverflow) = (round.life, round.number, false) }
        count += 1
        if round.life != life {
            ended.insert(life)
            return ended.contains(round.life) ? "the rounds went back to a life that had ended" : nil
        }
        // A round without changes is not persisted, and restarts at another owner.
        if round.number == 0, number == 0 { return nil }
        // A restarted stream begins with the current value, which may be the last one of the stream before.
        if isAfterOverflow {
            return round.number >= number || steps.use()
                ? nil : "the rounds went back from \(number) to \(round.number)"
        }
        return round.number == number + 1 || steps.use() ? nil : "round \(round.number) came after \(number)"
    }

    var description: String { "round \(number) of life \(life)" }
}

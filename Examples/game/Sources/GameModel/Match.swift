public import TrebuchetClient

/// An event of a match.
public enum MatchEvent: Codable, Sendable {
    case begun(names: [String])
    case crashed(name: String, tick: Int)
    /// Nil if both crashed at the same tick.
    case won(name: String?)
}

/// The reason why a player cannot join.
public enum MatchFull: Error, Codable, Sendable {
    case full, taken
}

/// One match of two players.
@Trebuchet
public distributed actor Match {
    @StreamedState public var board: Board = Board()
    @StreamedEvents public var news: MatchEvent
    private let tick: Duration

    public init(tick: Duration = .milliseconds(250), actorSystem: TrebuchetActorSystem) {
        self.tick = tick
        self.actorSystem = actorSystem
    }

    /// Joins the match, which begins with the second player.
    public distributed func join(name: String) throws(MatchFull) {
        guard board.riders.count < 2 else { throw .full }
        guard !board.riders.contains(where: { $0.name == name }) else { throw .taken }
        let isFirst = board.riders.isEmpty
        let start = GridPosition(x: isFirst ? 4 : Board.width - 5, y: Board.height / 2)
        board.riders.append(Rider(name: name, direction: isFirst ? .right : .left, trail: [start]))
        if !isFirst { begin() }
    }

    /// Turns a rider; ignores a turn into its trail.
    public distributed func turn(name: String, to direction: Direction) {
        guard let index = board.riders.firstIndex(where: { $0.name == name }) else { return }
        let trail = board.riders[index].trail
        guard trail.dropLast().last != board.riders[index].next(direction) else { return }
        board.riders[index].direction = direction
    }

    private func begin() {
        $news.send(.begun(names: board.riders.map(\.name)))
        Task {
            while !board.isOver {
                try await Task.sleep(for: tick)
                step()
            }
        }
    }

    private func step() {
        board.step()
        guard board.isOver else { return }
        for rider in board.riders where rider.hasCrashed { $news.send(.crashed(name: rider.name, tick: board.tick)) }
        $news.send(.won(name: board.riders.first { !$0.hasCrashed }?.name))
    }
}

public import Trebuchet

/// The observed state of the game.
public struct GameState: Codable, Sendable, Equatable {
    /// The current level.
    public var level = 1
    /// The current score.
    public var score = 0
    /// The names of the players, in the order of their joins.
    public var players: [String] = []

    /// Creates the state of a new game.
    public init() {}
}

/// Statistics of the game, observed separately.
public struct Metrics: Codable, Sendable, Equatable {
    /// The number of joins.
    public var joins = 0
    /// The number of levels played.
    public var levelsPlayed = 0

    /// Creates statistics of a new game.
    public init() {}
}

/// `game`: one actor with two states that are observed separately.
@Trebuchet
public distributed actor GameServer {
    /// The state of the game.
    @StreamedState public var gameState: GameState = GameState()
    /// The statistics of the game.
    @StreamedState public var metrics: Metrics = Metrics()

    /// Advances to the next level and returns it.
    public distributed func advanceLevel() -> Int {
        gameState.level += 1
        gameState.score += 100
        metrics.levelsPlayed += 1
        return gameState.level
    }

    /// Adds a player once, however often it is called with the same name. Returns all players. There are at most 1,000
    /// players, whose names have 1 to 128 bytes.
    public distributed func join(player: String) throws -> [String] {
        try ExampleActors.checkName(player, "player")
        if !gameState.players.contains(player) {
            try ExampleActors.checkRoom(gameState.players.count, "players", toMakeRoom: "join with one of their names")
            gameState.players.append(player)
            metrics.joins += 1
        }
        return gameState.players
    }
}

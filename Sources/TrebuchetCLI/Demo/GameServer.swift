public import Trebuchet

public struct GameState: Codable, Sendable, Equatable {
    public var level = 1
    public var score = 0
    public var players: [String] = []

    public init() {}
}

public struct Metrics: Codable, Sendable, Equatable {
    public var joins = 0
    public var levelsPlayed = 0

    public init() {}
}

/// `game`: two states of one actor, observed apart.
@Trebuchet
public distributed actor GameServer {
    @StreamedState public var gameState: GameState = GameState()
    @StreamedState public var metrics: Metrics = Metrics()

    public distributed func advanceLevel() -> Int {
        gameState.level += 1
        gameState.score += 100
        metrics.levelsPlayed += 1
        return gameState.level
    }

    /// Joins once, however often it is called with the same name.
    public distributed func join(player: String) -> [String] {
        if !gameState.players.contains(player) {
            gameState.players.append(player)
            metrics.joins += 1
        }
        return gameState.players
    }
}

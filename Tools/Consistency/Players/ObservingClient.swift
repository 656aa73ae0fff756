import Platform
import Trebuchet

/// Looks in on the game that a player does not play, for a moment, again and again: so streams begin and end while connections do.
struct ObservingClient {
    private let name: String
    private let game: Game
    private let steps: StepsBack
    private var random: RandomSource

    init(_ client: TrebuchetClient, _ number: Int, of player: Player, seed: UInt64) throws {
        name = "onlooker \(number) of player \(player.number)"
        steps = player.strictness.stepsBack
        game = try client.resolve(Game.self, id: GameServer.name((player.gameNumber + 1) % GameServer.games))
        random = RandomSource(seed: seed ^ UInt64(number + 1) << 40)
    }

    /// Until it is cancelled.
    mutating func run() async throws {
        while true {
            let reading = read(Int.random(in: 0..<3, using: &random))
            try? await Task.sleep(for: .milliseconds(Int.random(in: 0..<60, using: &random)))
            reading.cancel()
            await reading.value
            try await Task.sleep(for: .milliseconds(Int.random(in: 0..<20, using: &random)))
        }
    }

    private func read(_ kind: Int) -> Task<Void, Never> {
        let (game, name, steps) = (game, name, steps)
        return Task {
            switch kind {
            case 0:
                var check = LedgerCheck(steps)
                await Self.read(await game.observeLedger(), "the ledger", name) { check.take($0) }
            case 1:
                var check = BoardCheck()
                await Self.read(await game.observeBoard(), "the board", name) { check.take($0) }
            default:
                // It may begin anywhere, and each that follows comes.
                var check = RoundCheck()
                check.overflowed()
                await Self.read(await game.observeRound(), "the rounds", name) { check.take($0) }
            }
        }
    }

    private static func read<Value>(
        _ stream: StateStream<Value>, _ what: String, _ name: String, _ check: (Value) -> String?
    ) async {
        var hasBegun = false
        for await value in stream {
            hasBegun = true
            if let text = check(value) { Output.finding("\(name): \(what): \(text)") }
        }
        // A stream cannot start while the engine is unavailable.
        let mayFail: [TrebuchetError.Code] = hasBegun ? [.overflow] : [.overflow, .unavailable]
        if case .failed(let error) = stream.outcome, !mayFail.contains(error.code) {
            Output.finding("\(name): the stream of \(what) ended: \(error)")
        }
    }
}

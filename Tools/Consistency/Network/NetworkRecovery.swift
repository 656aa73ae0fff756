import Synchronization
import Trebuchet

/// Checks that the nodes respond: calls each game or counter through each node.
struct NetworkRecovery {
    let ports: [Int]
    /// Whether the nodes host counters instead of games.
    let isServed: Bool

    /// The outcome of each call.
    struct Answer: CustomStringConvertible {
        /// nil for one that was answered.
        let error: TrebuchetError?
        let description: String
    }

    /// One call of each game over each node, all at once, and how long the last one took.
    func ask(within limit: Duration) async -> (answers: [Answer], took: Duration) {
        let begin = ContinuousClock.now
        let answers = await withTaskGroup(of: Answer.self) { group in
            for port in ports {
                for game in 0..<GameServer.games {
                    group.addTask { await ask(port, game, within: limit) }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        return (answers, .now - begin)
    }

    /// Asks again and again until all nodes answer; nil when that takes longer than `limit`.
    func waitUntilHealed(within limit: Duration) async -> Duration? {
        let begin = ContinuousClock.now
        while ContinuousClock.now < begin + limit {
            if await ask(within: .seconds(3)).answers.allSatisfy({ $0.error == nil }) { return .now - begin }
            try? await Task.sleep(for: .milliseconds(20))
        }
        return nil
    }

    private func ask(_ port: Int, _ game: Int, within limit: Duration) async -> Answer {
        var options = Player.options
        options.callTimeout = limit
        let client = TrebuchetClient(transports: PlayerOutputLine.transports([port]), options: options)
        defer { Task { await client.close() } }
        do {
            try await client.connect()
            if isServed {
                _ = try await client.resolve(Counter.self, id: Counter.nameBeside(game)).add(0)
            } else {
                _ = try await client.resolve(Game.self, id: GameServer.name(game)).look()
            }
            return Answer(error: nil, description: "answered")
        } catch {
            let error = error as? TrebuchetError ?? TrebuchetError(.internal, "\(error)")
            return Answer(error: error, description: "\(error.code): \(error.message)")
        }
    }
}

/// Something that is counted from several threads.
final class Count: Sendable {
    private let number = Mutex(0)

    var value: Int { number.withLock { $0 } }
    func add() { number.withLock { $0 += 1 } }
}

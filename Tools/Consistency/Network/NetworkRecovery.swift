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

    /// One call of each game over each node, all at once, and how long the last one took: at most `limit`.
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

    /// Whether all nodes answer within the time.
    func isHealed(within limit: Duration) async -> Bool {
        await ask(within: limit).answers.allSatisfy { $0.error == nil }
    }

    /// Leaves a call to itself at the limit: its client connects again and again to a node that is gone.
    private func ask(_ port: Int, _ game: Int, within limit: Duration) async -> Answer {
        var options = Player.options
        options.callTimeout = limit
        let client = TrebuchetClient(transports: FaultyClientLinks.transports([port]), options: options)
        let (answers, answer) = AsyncStream.makeStream(of: Answer.self)
        let calling = Task { answer.yield(await call(client, game)) }
        let waiting = Task {
            try await Task.sleep(for: limit)
            answer.yield(Self.noAnswer(of: port, within: limit))
        }
        defer {
            calling.cancel()
            waiting.cancel()
            Task { await client.close() }
        }
        for await first in answers { return first }
        return Self.noAnswer(of: port, within: limit)
    }

    private static func noAnswer(of port: Int, within limit: Duration) -> Answer {
        let error = TrebuchetError(.timeout, "no answer over port \(port) within \(limit)")
        return Answer(error: error, description: "\(error.code): \(error.message)")
    }

    private func call(_ client: TrebuchetClient, _ game: Int) async -> Answer {
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

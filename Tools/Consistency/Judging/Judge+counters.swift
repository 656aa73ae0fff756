import Trebuchet
import TrebuchetClient

/// The counters of a judged executable (`--server`) in the end.
extension Judge {
    /// Adds the end to each, and compares it with the answers.
    func finishCounters() async throws {
        let client = try await connectedClient(callsWithin: .seconds(30))
        var counts: [Int] = []
        for number in Counter.all {
            let counter = try client.resolve(Counter.self, id: Counter.name(number))
            do { counts.append(try await end(counter)) } catch {
                throw Halt(description: "in the end a call of counter \(number) ended with \(error)")
            }
        }
        try await wait("for the readers to see the end") { scores.now.done.count == Self.clientPools }
        await client.close()
        let now = scores.now
        outcome.acknowledged = now.acknowledged.count
        outcome.unknown = now.unknown.count
        outcome.refused = now.refused.count
        for final in now.finals {
            if let finding = CounterCheck.finding(inEnd: final.digest, of: final.state, by: final.reader, counts) {
                found(finding)
            }
        }
        if now.finals.count < self.options.clients { found("only \(now.finals.count) readers of counters saw the end") }
        for (number, count) in counts.enumerated() { compare(number, count % Counter.end, now) }
    }

    private func end(_ counter: Counter) async throws -> Int {
        while true {
            do { return try await counter.add(Counter.end) } catch let error as TrebuchetError
                where [.unknownOutcome, .unavailable].contains(error.code)
            { try await endAtLimit("for the end of a counter") }
        }
    }

    private func compare(_ number: Int, _ sum: Int, _ now: Scoreboard.Contents) {
        func isOfIt(_ call: Int) -> Bool { call / Player.callsPerPlayer % GameServer.games == number }
        var (owners, requiredCount): ([Int: Int], Int) = ([:], 0)
        for (call, answer) in now.acknowledged where isOfIt(call) {
            let mayBeLost = mayBeLost(call)
            if mayBeLost { outcome.lost += 1 } else { requiredCount += 1 }
            if let other = owners.updateValue(call, forKey: answer), !mayBeLost, !self.mayBeLost(other) {
                found("calls \(other) and \(call) of counter \(number) were both answered \(answer)")
            }
            if answer > sum, !mayBeLost {
                found("call \(call) was answered \(answer), and counter \(number) is \(sum)")
            }
        }
        let most = now.acknowledged.keys.count(where: isOfIt) + now.unknown.count(where: isOfIt)
        outcome.unknownThatRan += max(0, sum - now.acknowledged.keys.count(where: isOfIt))
        guard sum < requiredCount || sum > most else { return }
        found("counter \(number) is \(sum): \(requiredCount) calls have to be in it, and \(most) may be")
    }
}

import Foundation
import Platform
import TestSupport
import Trebuchet
import TrebuchetTesting

/// `Consistency play SEED PORTS FIRST COUNT CALLS [may-lose|restored|ordered]`: some of the clients, in a separate process. It prints the outcomes of
/// calls, the findings of readers, `played` after the last call, and `done` when all readers have seen the end.
struct ClientPool: Sendable {
    let seed: UInt64
    let ports: [Int]
    let first: Int
    let count: Int
    let calls: Int
    let strictness: Strictness
    private var isOrdered: Bool { strictness == .ordered }
    private let progress = ClientProgress()
    private let sent = SentBytes()

    init?(_ words: [String]) {
        let last = words.last.flatMap(Strictness.init)
        strictness = last ?? .usual
        let words = Array(words.prefix(last == nil ? words.count : words.count - 1))
        guard words.count == 5, let ports = FaultyClientLinks.ports(words[1]) else { return nil }
        let numbers = words.compactMap(Int.init)
        guard numbers.count >= 4, let seed = UInt64(words[0]) else { return nil }
        self.ports = ports
        self.seed = seed
        (first, count, calls) = (numbers[numbers.count - 3], numbers[numbers.count - 2], numbers[numbers.count - 1])
    }

    func run() async throws {
        Self.listen(progress)
        let players = try (first..<(first + count)).map {
            try Player($0, seed: seed, ports: ports, strictness, progress)
        }
        // A client without faults, which knows how much the others have to catch up on.
        let witness = TrebuchetClient(transports: FaultyClientLinks.transports(ports), options: Player.options)
        try await witness.connect()
        let games = try (0..<GameServer.games).map { try witness.resolve(Game.self, id: GameServer.name($0)) }
        var watchers: [Watcher] = []
        for (number, game) in games.enumerated() {
            watchers.append(
                Watcher(
                    name: "witness \(first)", number: number, game: game, gate: Gate(), progress: progress,
                    sent: sent, isOfNodes: ports.count > 1, strictness: strictness))
        }
        for player in players {
            try await player.connect()
            watchers.append(player.watcher(sent, isOfNodes: ports.count > 1))
        }
        let readers = watchers.map { watcher in Task { await watcher.run() } }
        let cutting = Task { if !isOrdered { await cut(players) } }
        var totals = await play(players, games)
        cutting.cancel()
        await cutting.value
        // Messages of old connections must arrive before the end.
        progress.set("links", "wait for connections that were left open")
        _ = await eventually(within: .seconds(600)) { players.allSatisfy(\.links.isDone) }
        progress.set("links", nil)
        Output.printLine("played")
        for reader in readers { totals.add(await reader.value) }
        for player in players { player.links.addCounters(to: &totals) }
        Output.printLine("totals \(String(decoding: try JSONEncoder().encode(totals), as: UTF8.self))")
        Output.printLine("done")
        while true { try await Task.sleep(for: .seconds(60)) }
    }

    private func play(_ players: [Player], _ games: [Game]) async -> Totals {
        await withTaskGroup(of: Totals.self) { group in
            for player in players {
                group.addTask {
                    await player.play(calls: calls)
                    return Totals()
                }
            }
            var random = RandomSource(seed: seed &+ UInt64(first) << 40)
            let player = players[Int.random(in: 0..<players.count, using: &random)]
            let stall = StalledClient(player: player, &random)
            let game = games[player.gameNumber]
            if !isOrdered { group.addTask { await stall.run(game, sent, progress) } }
            return await group.reduce(into: Totals()) { $0.add($1) }
        }
    }

    /// Cuts lines now and then, beside what these do by themselves.
    private func cut(_ players: [Player]) async {
        var random = RandomSource(seed: seed &+ UInt64(first) << 20)
        while !Task.isCancelled {
            try? await Task.sleep(for: .milliseconds(Int.random(in: 20...300, using: &random)))
            let silence = Duration.milliseconds(Int.random(in: 50...600, using: &random))
            let cuts: [FaultyLink.Cut] = [.inOrder, .reset, .halfOpen(silence), .late(silence)]
            let player = players[Int.random(in: 0..<players.count, using: &random)]
            await player.links.cutAll(cuts[Int.random(in: 0..<cuts.count, using: &random)])
        }
    }

    /// Says where everybody is when the judge asks, and ends with it.
    static func listen(_ progress: ClientProgress) {
        startThread {
            while let line = readLine() {
                if line == "status" { for line in progress.lines { Output.printLine("status \(line)") } }
            }
            // The judge has gone.
            exit(0)
        }
    }
}

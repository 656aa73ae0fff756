import Platform
import Trebuchet
import TrebuchetTesting

/// A player that does not read until more than a MiB has come for it.
struct StalledClient: Sendable {
    private enum StallLocation { case reader, line }

    private static let eventBytes = 8_192
    private static let eventsPerBurst = 16

    private let player: Player
    private let place: StallLocation
    private let bytes: Int
    private let wait: Duration

    init(player: Player, _ random: inout RandomSource) {
        self.player = player
        place = Bool.random(using: &random) ? .reader : .line
        // Most bursts fit the buffer of a slow subscriber; some exceed it and cause an overflow. A connection itself buffers some MiB.
        let isLarge = Int.random(in: 0..<4, using: &random) == 0
        let beyond = place == .line ? 14 << 20...16 << 20 : 5 << 20...8 << 20
        bytes = Int.random(in: isLarge ? beyond : 1_100_000...1_900_000, using: &random)
        wait = .milliseconds(Int.random(in: 0...300, using: &random))
    }

    func run(_ game: Game, _ sent: SentBytes, _ progress: ClientProgress) async -> Totals {
        let name = "stall of player \(player.number)"
        defer { progress.set(name, nil) }
        try? await Task.sleep(for: wait)
        switch place {
        case .reader: player.gate.close()
        case .line: await player.links.stall()
        }
        let before = sent.total(player.gameNumber)
        while sent.total(player.gameNumber) < before + bytes {
            progress.set(name, "waits for \(before + bytes - sent.total(player.gameNumber)) more bytes")
            // Events that are lost with a server do not count.
            try? await game.burst(Self.eventsPerBurst, padding: Self.eventBytes)
        }
        switch place {
        case .reader: player.gate.open()
        case .line: await player.links.resume()
        }
        var totals = Totals()
        totals.stalls = 1
        totals.stalledBytes = sent.total(player.gameNumber) - before
        return totals
    }
}

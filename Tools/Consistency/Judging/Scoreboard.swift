import Foundation
import Synchronization

/// The reports of the client pools.
final class Scoreboard: Sendable {
    struct Contents {
        /// By the call, as which it ran.
        var acknowledged: [Int: Int] = [:]
        var acknowledgedAt: [Int: ContinuousClock.Instant] = [:]
        var unknown: Set<Int> = []
        /// And why.
        var refused: [Int: String] = [:]
        var findings: [String] = []
        /// The final states of readers, with the game, the state's name and its digest.
        var finals: [(reader: String, state: String, digest: String)] = []
        var played: Set<Int> = []
        var done: Set<Int> = []
        var status: [String] = []
        var totals = Totals()
        /// Unexpected lines.
        var strange: [String] = []

        var ended: Int { acknowledged.count + unknown.count + refused.count }
    }

    private let contents = Mutex(Contents())

    var now: Contents { contents.withLock { $0 } }

    func take(_ line: String, from pool: Int) {
        let words = line.split(separator: " ", maxSplits: 1)
        guard let kind = words.first else { return }
        let rest = words.count > 1 ? String(words[1]) : ""
        let parts = rest.split(separator: " ")
        contents.withLock { contents in
            switch kind {
            case "acked":
                guard parts.count == 2, let call = Int(parts[0]), let turn = Int(parts[1]) else { fallthrough }
                contents.acknowledged[call] = turn
                contents.acknowledgedAt[call] = .now
            case "unknown" where Int(rest) != nil: contents.unknown.insert(Int(rest)!)
            case "refused":
                guard let call = parts.first.flatMap({ Int($0) }) else { fallthrough }
                contents.refused[call] = parts.dropFirst().joined(separator: " ")
            case "finding": contents.findings.append(rest)
            case "final" where parts.count > 3:
                contents.finals.append(
                    (parts[3...].joined(separator: " "), "\(parts[0]) \(parts[1])", String(parts[2])))
            case "played": contents.played.insert(pool)
            case "done": contents.done.insert(pool)
            case "status": contents.status.append(rest)
            case "totals":
                let totals = try? JSONDecoder().decode(Totals.self, from: Data(rest.utf8))
                contents.totals.add(totals ?? Totals())
            default: contents.strange.append(line)
            }
        }
    }
}

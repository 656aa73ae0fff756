/// Shares the time of an actor between parties whose calls take many turns: the party that has used the least time gets the next
/// turn, however many calls it has. A party that was idle begins with the time of the others.
///
/// It is used in the isolation of its actor only.
final class FairTurns<Party: Hashable & Sendable> {
    private struct Usage {
        var waiting: [CheckedContinuation<Void, Never>] = []
        /// Nanoseconds, counted from the time of the party that had used the least.
        var time: UInt64
    }

    /// The maximum time in nanoseconds that a party owes for turns without other waiting parties.
    private static var maximumDebt: UInt64 { 10_000_000 }
    /// Above this number of parties, those that do not wait are forgotten.
    private static var maximumIdleParties: Int { 1_024 }

    private var parties: [Party: Usage] = [:]
    private var isTaken = false
    /// The time of the party with the last turn, when that began.
    private var least: UInt64 = 0

    /// Returns when the party has a turn; ``end(_:after:)`` must follow in the same turn of the actor.
    func begin(_ party: Party, isolation: isolated (any Actor)? = #isolation) async {
        guard isTaken else {
            isTaken = true
            return
        }
        let time = max(parties[party]?.time ?? 0, least)
        await withCheckedContinuation {
            parties[party, default: Usage(time: time)].waiting.append($0)
            parties[party]?.time = time
        }
    }

    /// Ends a turn, and gives the next one to a waiting call.
    func end(_ party: Party, after nanoseconds: UInt64) {
        let time = max(parties[party]?.time ?? 0, least) + nanoseconds
        parties[party, default: Usage(time: time)].time = time
        var next: (party: Party, time: UInt64)?
        for (party, usage) in parties where !usage.waiting.isEmpty && usage.time < next?.time ?? .max {
            next = (party, usage.time)
        }
        guard let next else {
            isTaken = false
            least = max(least, time - min(time, Self.maximumDebt))
            parties = parties.filter { $0.value.time > least }
            return
        }
        least = max(least, next.time)
        if parties.count > Self.maximumIdleParties {
            parties = parties.filter { !$0.value.waiting.isEmpty }
        }
        parties[next.party]?.waiting.removeFirst().resume()
    }
}

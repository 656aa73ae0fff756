/// Shares the time of an actor between parties whose calls take many turns: the party that has used the least time gets the next
/// turn, however many calls it has. A party that was idle begins with the time of the others.
///
/// One call has the turns until it waits for the next one or ends. The others wait here and not in the queue of the actor, so
/// that calls which take no turns wait for one turn at most. The calls of a party end in the order in which they began.
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

    /// Returns when the party has a turn; ``yield(_:after:isolation:)`` or ``end(_:after:)`` must follow in the same turn of the
    /// actor.
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

    /// Ends a turn, and returns when the call has the next one.
    func yield(_ party: Party, after nanoseconds: UInt64, isolation: isolated (any Actor)? = #isolation) async {
        charge(party, nanoseconds)
        // The turn stays taken meanwhile. The other calls of the party wait until this one ends: what it has built takes memory.
        guard let next = nextParty(besides: party), next != party else { return await Task.yield() }
        await withCheckedContinuation {
            parties[party]?.waiting.insert($0, at: 0)
            resumeCall(of: next)
        }
    }

    /// Ends the last turn of a call, and gives the next one to a waiting call.
    func end(_ party: Party, after nanoseconds: UInt64) {
        charge(party, nanoseconds)
        guard let next = nextParty() else {
            isTaken = false
            let time = parties[party]?.time ?? 0
            least = max(least, time - min(time, Self.maximumDebt))
            parties = parties.filter { $0.value.time > least }
            return
        }
        resumeCall(of: next)
    }

    private func charge(_ party: Party, _ nanoseconds: UInt64) {
        let time = max(parties[party]?.time ?? 0, least) + nanoseconds
        parties[party, default: Usage(time: time)].time = time
    }

    /// Returns the party that has used the least time; nil when none waits.
    ///
    /// - Parameter own: a party that counts as waiting.
    private func nextParty(besides own: Party? = nil) -> Party? {
        var next: (party: Party, time: UInt64)?
        for (party, usage) in parties
        where (!usage.waiting.isEmpty || party == own) && usage.time < next?.time ?? .max {
            next = (party, usage.time)
        }
        guard let next else { return nil }
        least = max(least, next.time)
        return next.party
    }

    private func resumeCall(of party: Party) {
        if parties.count > Self.maximumIdleParties {
            parties = parties.filter { !$0.value.waiting.isEmpty }
        }
        parties[party]?.waiting.removeFirst().resume()
    }
}

/// Shares the time of an actor between scopes whose calls take many turns: the scope that has used the least time gets the next
/// turn, however many calls it has. A scope that was idle begins with the time of the others.
///
/// One call has the turns until it waits for the next one or ends. The others wait here and not in the queue of the actor, so
/// that calls which take no turns wait for one turn at most. The calls of a scope end in the order in which they began.
///
/// It is used in the isolation of its actor only.
final class FairTurns<Scope: Hashable & Sendable> {
    private struct Usage {
        var waiting: [CheckedContinuation<Void, Never>] = []
        /// Nanoseconds, counted from the time of the scope that had used the least.
        var time: UInt64
    }

    /// The maximum time in nanoseconds that a scope owes for turns without other waiting scopes.
    private static var maximumDebt: UInt64 { 10_000_000 }
    /// Above this number of scopes, those that do not wait are forgotten.
    private static var maximumIdleScopes: Int { 1_024 }

    private var scopes: [Scope: Usage] = [:]
    private var isTaken = false
    /// The time of the scope with the last turn, when that began.
    private var least: UInt64 = 0

    /// Returns when the scope has a turn; ``yield(_:after:isolation:)`` or ``end(_:after:)`` must follow in the same turn of the
    /// actor.
    func begin(_ scope: Scope, isolation: isolated (any Actor)? = #isolation) async {
        guard isTaken else {
            isTaken = true
            return
        }
        let time = max(scopes[scope]?.time ?? 0, least)
        await withCheckedContinuation {
            scopes[scope, default: Usage(time: time)].waiting.append($0)
            scopes[scope]?.time = time
        }
    }

    /// Ends a turn, and returns when the call has the next one.
    func yield(_ scope: Scope, after nanoseconds: UInt64, isolation: isolated (any Actor)? = #isolation) async {
        charge(scope, nanoseconds)
        // The turn stays taken meanwhile. The other calls of the scope wait until this one ends: what it has built takes memory.
        guard let next = nextScope(excluding: scope), next != scope else { return await Task.yield() }
        await withCheckedContinuation {
            scopes[scope]?.waiting.insert($0, at: 0)
            resumeCall(of: next)
        }
    }

    /// Ends the last turn of a call, and gives the next one to a waiting call.
    func end(_ scope: Scope, after nanoseconds: UInt64) {
        charge(scope, nanoseconds)
        guard let next = nextScope() else {
            isTaken = false
            let time = scopes[scope]?.time ?? 0
            least = max(least, time - min(time, Self.maximumDebt))
            scopes = scopes.filter { $0.value.time > least }
            return
        }
        resumeCall(of: next)
    }

    private func charge(_ scope: Scope, _ nanoseconds: UInt64) {
        let time = max(scopes[scope]?.time ?? 0, least) + nanoseconds
        scopes[scope, default: Usage(time: time)].time = time
    }

    /// Returns the scope that has used the least time; nil when none waits.
    ///
    /// - Parameter own: a scope that counts as waiting.
    private func nextScope(excluding own: Scope? = nil) -> Scope? {
        var next: (scope: Scope, time: UInt64)?
        for (scope, usage) in scopes
        where (!usage.waiting.isEmpty || scope == own) && usage.time < next?.time ?? .max {
            next = (scope, usage.time)
        }
        guard let next else { return nil }
        least = max(least, next.time)
        return next.scope
    }

    private func resumeCall(of scope: Scope) {
        if scopes.count > Self.maximumIdleScopes {
            scopes = scopes.filter { !$0.value.waiting.isEmpty }
        }
        scopes[scope]?.waiting.removeFirst().resume()
    }
}

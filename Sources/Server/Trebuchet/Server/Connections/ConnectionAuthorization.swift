internal import Bytes
internal import Synchronization
package import TrebuchetActors

/// The authorization of one connection: its caller, the decisions of the access rules, and the rates. Isolated to the connection's
/// reactor.
///
/// A class, since rules are code of the app, which may revoke the caller's access meanwhile.
package final class ConnectionAuthorization {
    private let shard: ServerShard
    /// The connection as actors see it, at a server that authenticates callers.
    private let connection: CallerConnection?
    /// Indicates whether the server itself is at the other end: its calls need no permission.
    private let isServer: Bool
    /// Indicates whether access was revoked.
    var isRevoked = false
    /// The caller of the last call that needed one.
    private var lastCaller: Caller?
    /// The rate limits, at a server with rates, from the first call on.
    private var buckets: ConnectionBuckets?
    /// The authorization cache, at a server with rules, from the first call on.
    private var cache: AuthorizationCache?

    init(of connection: CallerConnection?, isServer: Bool, at shard: ServerShard) {
        (self.connection, self.isServer, self.shard) = (connection, isServer, shard)
    }

    /// The caller of a call that arrives now, with the present principal of the connection; nil at a server that does not authenticate
    /// callers. It stays the caller of the call, whatever the principal is when the call starts.
    package var caller: Caller? {
        guard let connection else { return nil }
        if let lastCaller, lastCaller.isCurrent { return lastCaller }
        let caller = Caller(connection: connection)
        lastCaller = caller
        return caller
    }

    // MARK: Refusals

    /// Returns the error for the use of an actor after a revocation; nil when the caller may use it.
    package func revocation(of actorID: String) -> TrebuchetError? {
        isRevoked ? connection?.revocation(of: actorID) : nil
    }

    /// Returns the reason why a call or stream may not start; nil when it may. Rates do not count here.
    ///
    /// - Parameters:
    ///   - call: Its running call; nil for a message that is not recorded, or is handled again.
    ///   - continued: The withdrawn call of a message that is handled again.
    func refusal(
        of target: String, _ actorID: String, for call: InFlightCall?, continuing continued: InFlightCall?
    ) -> TrebuchetError? {
        if isServer { return nil }
        if let revocation = revocation(of: actorID) { return revocation }
        if !isPermitted(call ?? continued), let refusal = refusalByRules(target, actorID) { return refusal }
        // The call is recorded already: no other code takes the permission.
        if let call { call.permission = consumePermission() ?? call.permission }
        return nil
    }

    /// Returns the reason why a call that has waited may not start; nil when it may. It starts as the principal that it arrived with:
    /// never as another one, and not after that principal has left the connection, since its session may have ended. If the rules or
    /// the roles of the principal have changed, the new ones apply.
    func refusalAfterWait(of target: String, _ actorID: String, _ call: InFlightCall) -> TrebuchetError? {
        if isServer { return nil }
        if let refusal = refusalOfReplacedPrincipal(call) ?? revocation(of: actorID) { return refusal }
        if let known = call.caller, !known.isCurrent, known.principal != nil, let caller { call.caller = caller }
        guard shard.rules != nil, call.permission != basis else { return nil }
        return refusalByRules(target, actorID, of: call.caller)
    }

    /// Returns the error of a call whose principal is no longer that of the connection.
    package func refusalOfReplacedPrincipal(_ call: InFlightCall) -> TrebuchetError? {
        // A call that arrived before a sign-in has no principal, so it may run.
        !isServer && call.stream == nil && call.caller?.hasLeft == true ? Caller.replacedPrincipal : nil
    }

    // MARK: Rules

    /// Indicates whether the access rules check the connection's streams again when they change or the principal changes.
    var isUnderRules: Bool { !isServer && shard.rules != nil }

    /// Returns the conditions of the permission of the call that is being recorded, once.
    func consumePermission() -> AuthorizationCache.Basis? { cache?.consumePermission() }

    /// Returns the error of a target that the current rules refuse to the current principal.
    func refusalByRules(_ target: String, _ actorID: String) -> TrebuchetError? {
        refusalByRules(target, actorID, of: caller)
    }

    /// Returns whether the current rules have already permitted the call to the current principal: it has returned from a queue.
    private func isPermitted(_ call: InFlightCall?) -> Bool {
        guard let permission = call?.permission else { return false }
        return permission == basis
    }

    /// The conditions of a decision by the access rules.
    private var basis: AuthorizationCache.Basis {
        AuthorizationCache.Basis(
            rules: shard.context.rules.load(ordering: .acquiring),
            principal: connection?.principalChanges.load(ordering: .acquiring) ?? 0)
    }

    /// - Parameter caller: The caller of the call, which may have arrived before a sign-in.
    private func refusalByRules(_ target: String, _ actorID: String, of caller: Caller?) -> TrebuchetError? {
        guard let rules = shard.rules else { return nil }
        let (actorID, target) = shard.helpers.subject(of: target, actorID)
        guard !isGranted(target, actorID, caller, rules) else { return nil }
        let code: TrebuchetError.Code = caller?.principal == nil ? .unauthenticated : .unauthorized
        let subject = "'\(target.prefix(bytes: 128))' of actor '\(actorID.prefix(bytes: 128))'"
        shard.context.refusedSubjects.recordDenial(subject, code, to: caller)
        return TrebuchetError(code, "\(subject) is not allowed")
    }

    private func isGranted(_ target: String, _ actorID: String, _ caller: Caller?, _ rules: AccessRules) -> Bool {
        // The decisions of the cache are those for the present principal.
        guard caller?.isCurrent != false else { return rules.mayCall(caller, actorID, target) }
        // Read before the decision: if the rules change meanwhile, the decision belongs to the earlier rules.
        let basis = basis
        let cache = cache ?? AuthorizationCache()
        self.cache = cache
        if rules.cachesGrants {
            let actor = ActorName(actorID)
            if !cache.contains(actor, target, on: basis) {
                guard rules.mayCall(caller, actorID, target) else { return false }
                cache.storeGrant(actor, target, on: basis)
            }
        } else if !rules.mayCall(caller, actorID, target) {
            return false
        }
        cache.recordPermission(on: basis)
        return true
    }

    // MARK: Rates

    /// Counts the calls with those of other connections of the same client.
    func shareBuckets(_ buckets: ConnectionBuckets) { self.buckets = buckets }

    /// Counts a message, unless a rate is exceeded. Returns the error and the name of the setting then.
    ///
    /// - Parameter actorID: The called actor; nil for messages to none, to which no rate of a method applies.
    func rateRefusal(of target: String, _ actorID: String?) -> (error: TrebuchetError, setting: String)? {
        let buckets = buckets ?? ConnectionBuckets()
        self.buckets = buckets
        let type = shard.context.hasMethodRate(target) ? actorID.flatMap { shard.type(of: ActorName($0)) } : nil
        guard
            let (what, setting, wait) = buckets.consume(
                target, of: type, shard.limits.calls.rate, shard.principalBuckets, connection?.principal,
                at: shard.reactor.now)
        else { return nil }
        let error = TrebuchetError(
            .rateLimited, "too many \(what) (ServerLimits.\(setting)); try again in \(wait) ms",
            retryAfter: .milliseconds(wait))
        return (error, setting)
    }
}

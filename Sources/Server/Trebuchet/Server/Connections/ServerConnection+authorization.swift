internal import Bytes
internal import Synchronization
package import TrebuchetActors
internal import TrebuchetWire

/// Authorization and rate limits.
extension ServerConnection {
    /// Applies a change of the connection's authorization: a revocation, or its end.
    func authorizationDidChange() {
        guard isOpen else { return }
        let revocation = callerConnection?.revocation()
        defer {
            isRevoked = revocation != nil
            forwarder?.callerDidChange()
        }
        guard let revocation, !isRevoked else { return }
        // The server of a forwarded client has notified it.
        if upstream == nil { sendError(revocation.code.wire, revocation.message) }
        for subscription in Array(streams.values) { endStream(subscription, reason: .error, error: revocation) }
        forwarder?.endStreams { _, _ in revocation }
    }

    /// Returns the error for the use of an actor after a revocation; nil when the caller may use it.
    package func revocation(of actorID: String) -> TrebuchetError? {
        isRevoked ? callerConnection?.revocation(of: actorID) : nil
    }

    /// Returns whether calls of a method, or starts of a stream, need checks before they run.
    func isGuarded(_ target: String) -> Bool {
        isGuarded || shard.context.hasMethodRate(target)
    }

    /// Returns the reason why a call or stream may not start; nil when it may.
    ///
    /// - Parameter call: Its running call; nil for a message that is not recorded, or is handled again.
    func refusal(of target: String, _ actorID: String, for call: InFlightCall? = nil) -> TrebuchetError? {
        if isServer { return nil }
        if let revocation = revocation(of: actorID) { return revocation }
        if !isPermitted(call), let refusal = refusalByRules(target, actorID) { return refusal }
        // The call is recorded already: no other code takes the permission.
        if let call { call.permission = grants?.consumePermission() ?? call.permission }
        return shard.context.hasRates && !isCounted ? rateRefusal(of: target, actorID) : nil
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
        !isServer && call.stream == nil && call.caller?.hasLeft == true ? Self.replacedPrincipal : nil
    }

    /// The error of a call that has waited until its principal had left the connection.
    package static var replacedPrincipal: TrebuchetError {
        TrebuchetError(
            .unauthenticated,
            "the principal of the connection has changed before the call started; sign in and call again")
    }

    /// Returns whether the current rules have already permitted the call to the current principal: it has returned from a queue.
    private func isPermitted(_ call: InFlightCall?) -> Bool {
        let continued = shard.continued.flatMap { $0.connection === self ? $0.call : nil }
        guard let permission = (call ?? continued)?.permission else { return false }
        return permission == basis
    }

    /// The conditions of a decision by the access rules.
    private var basis: AuthorizationCache.Basis {
        AuthorizationCache.Basis(
            rules: shard.context.rules.load(ordering: .acquiring),
            principal: callerConnection?.principalChanges.load(ordering: .acquiring) ?? 0)
    }

    private func refusalByRules(_ target: String, _ actorID: String) -> TrebuchetError? {
        refusalByRules(target, actorID, of: caller)
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
        let grants = grants ?? AuthorizationCache()
        self.grants = grants
        if rules.cachesGrants {
            let actor = ActorName(actorID)
            if !grants.contains(actor, target, on: basis) {
                guard rules.mayCall(caller, actorID, target) else { return false }
                grants.storeGrant(actor, target, on: basis)
            }
        } else if !rules.mayCall(caller, actorID, target) {
            return false
        }
        grants.recordPermission(on: basis)
        return true
    }

    /// Indicates whether the access rules check its streams again when they change or the principal changes.
    var isUnderRules: Bool { !isServer && shard.rules != nil }

    /// Ends the streams that the current rules refuse to the current principal, including streams that have not started.
    func endRefusedStreams() {
        guard isOpen, isUnderRules else { return }
        for (streamID, name) in streams.authorized {
            guard let refusal = refusalByRules(name.target, name.actor.text), let subscription = streams[streamID]
            else { continue }
            endStream(subscription, reason: .error, error: refusal)
        }
        for request in streams.starting.values {
            if let refusal = refusalByRules(request.name.target, request.name.actor.text) {
                request.reservation.withdraw(refusal)
            }
        }
        for call in Array(running.values) {
            guard let stream = call.stream, let refusal = refusalByRules(stream.target, stream.actor.text) else {
                continue
            }
            call.cancel()
            finish(call, .failure(refusal))
        }
        forwarder?.endStreams { refusalByRules($0, $1) }
    }

    /// Returns the rate limit error for a message; nil when the message is within the rates and has been counted.
    ///
    /// - Parameter actorID: The called actor; nil for messages to none, to which no rate of a method applies.
    func rateRefusal(of target: String, _ actorID: String? = nil) -> TrebuchetError? {
        let buckets = buckets ?? ConnectionBuckets()
        self.buckets = buckets
        let now = shard.reactor.now
        let type = shard.context.hasMethodRate(target) ? actorID.flatMap { shard.type(of: ActorName($0)) } : nil
        if let (what, setting, wait) = buckets.consume(
            target, of: type, shard.limits.calls.rate, shard.principals, callerConnection?.principal, at: now)
        {
            countRejection(limit: setting)
            return TrebuchetError(
                .rateLimited, "too many \(what); try again in \(wait) ms", retryAfter: .milliseconds(wait))
        }
        return nil
    }
}

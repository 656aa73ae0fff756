internal import Bytes
internal import Synchronization
internal import TrebuchetActors
internal import TrebuchetWire

/// Who may do what, and how fast.
extension ServerConnection {
    /// The connection's rights were taken away, or given back.
    func rightsDidChange() {
        guard isOpen else { return }
        let revocation = caller?.connection.revocation()
        defer { isRevoked = revocation != nil }
        guard let revocation, !isRevoked else { return }
        tell(revocation.code.wire, revocation.message)
        for subscription in Array(streams.values) { endStream(subscription, reason: .error, error: revocation) }
        relays?.endStreams(revocation)
    }

    /// Why somebody whose rights were taken away may not use an actor.
    func revocation(of actorID: String) -> TrebuchetError? {
        isRevoked ? caller?.connection.revocation(of: actorID) : nil
    }

    /// Why a call or stream may not begin; nil when it may.
    func refusal(of target: String, _ actorID: String) -> TrebuchetError? {
        if isServer { return nil }
        if let revocation = revocation(of: actorID) { return revocation }
        if let mayCall = shard.mayCall {
            let (actorID, target) = shard.helpers.subject(of: target, actorID)
            if !isGranted(target, actorID, mayCall) {
                let code: TrebuchetError.Code = caller?.principal == nil ? .unauthenticated : .unauthorized
                let subject = "'\(target.prefix(bytes: 128))' of actor '\(actorID.prefix(bytes: 128))'"
                shard.parts.refusedSubjects.note(subject, code, to: caller)
                return TrebuchetError(code, "\(subject) is not allowed")
            }
        }
        return shard.limits.hasRates && !isCounted ? rateRefusal(of: target) : nil
    }

    private func isGranted(
        _ target: String, _ actorID: String, _ mayCall: (Caller?, String, String) -> Bool
    ) -> Bool {
        guard shard.keepsGrants else { return mayCall(caller, actorID, target) }
        // Before it is asked: a grant by rules that change meanwhile is one by those before.
        let basis = KeptGrants.Basis(
            rules: shard.parts.rules.load(ordering: .acquiring),
            principal: caller?.connection.principalChanges.load(ordering: .acquiring) ?? 0)
        let grants = grants ?? KeptGrants()
        self.grants = grants
        let actor = ActorName(actorID)
        if grants.contains(actor, target, on: basis) { return true }
        guard mayCall(caller, actorID, target) else { return false }
        grants.add(actor, target, on: basis)
        return true
    }

    /// Why a message may not come now, at a server with rates; nil when it has been counted.
    func rateRefusal(of target: String) -> TrebuchetError? {
        let buckets = buckets ?? ConnectionBuckets()
        self.buckets = buckets
        let now = shard.reactor.now
        if let (what, setting, wait) = buckets.take(
            target, shard.limits, shard.principals, caller?.principal, at: now)
        {
            didReach(setting)
            return TrebuchetError(
                .rateLimited, "too many \(what); try again in \(wait) ms", retryAfter: .milliseconds(wait))
        }
        return nil
    }
}

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
    ///
    /// - Parameter call: what it is already; nil for what has not been noted, or is handled again.
    func refusal(of target: String, _ actorID: String, for call: RunningCall? = nil) -> TrebuchetError? {
        if isServer { return nil }
        if let revocation = revocation(of: actorID) { return revocation }
        if !isPermitted(call), let refusal = refusalByRules(target, actorID) { return refusal }
        // It is noted already: nothing else takes it.
        if let call { call.permission = grants?.takePermission() ?? call.permission }
        return shard.limits.hasRates && !isCounted ? rateRefusal(of: target) : nil
    }

    /// Whether the rules of now have permitted a call to the caller of now before: it has come back from where it waited.
    private func isPermitted(_ call: RunningCall?) -> Bool {
        let continued = shard.continued.flatMap { $0.connection === self ? $0.call : nil }
        guard let permission = (call ?? continued)?.permission else { return false }
        return permission == basis
    }

    /// What a decision of the rules holds for.
    private var basis: KeptGrants.Basis {
        KeptGrants.Basis(
            rules: shard.parts.rules.load(ordering: .acquiring),
            principal: caller?.connection.principalChanges.load(ordering: .acquiring) ?? 0)
    }

    private func refusalByRules(_ target: String, _ actorID: String) -> TrebuchetError? {
        guard let rules = shard.rules else { return nil }
        let (actorID, target) = shard.helpers.subject(of: target, actorID)
        guard !isGranted(target, actorID, rules) else { return nil }
        let code: TrebuchetError.Code = caller?.principal == nil ? .unauthenticated : .unauthorized
        let subject = "'\(target.prefix(bytes: 128))' of actor '\(actorID.prefix(bytes: 128))'"
        shard.parts.refusedSubjects.note(subject, code, to: caller)
        return TrebuchetError(code, "\(subject) is not allowed")
    }

    private func isGranted(_ target: String, _ actorID: String, _ rules: AccessRules) -> Bool {
        // Calls come back that wait for actors which move between nodes.
        guard rules.keepsGrants || shard.parts.nodes != nil else { return rules.mayCall(caller, actorID, target) }
        // Before it is asked: a grant by rules that change meanwhile is one by those before.
        let basis = basis
        let grants = grants ?? KeptGrants()
        self.grants = grants
        if rules.keepsGrants {
            let actor = ActorName(actorID)
            if !grants.contains(actor, target, on: basis) {
                guard rules.mayCall(caller, actorID, target) else { return false }
                grants.add(actor, target, on: basis)
            }
        } else if !rules.mayCall(caller, actorID, target) {
            return false
        }
        grants.notePermission(on: basis)
        return true
    }

    /// Whether the rules are asked about its streams again when they change, or its caller does.
    var isUnderRules: Bool { !isServer && shard.rules != nil }

    /// Ends the streams that the rules of now refuse to the caller of now, those too that have not begun.
    func endRefusedStreams() {
        guard isOpen, isUnderRules else { return }
        for (streamID, name) in permitted {
            guard let refusal = refusalByRules(name.target, name.actor.text), let subscription = streams[streamID]
            else { continue }
            endStream(subscription, reason: .error, error: refusal)
        }
        for request in beginning.values {
            if let refusal = refusalByRules(request.name.target, request.name.actor.text) {
                request.stake.withdraw(refusal)
            }
        }
        for call in Array(running.values) {
            guard let stream = call.stream, let refusal = refusalByRules(stream.target, stream.actor.text) else {
                continue
            }
            call.cancel()
            finish(call, .failure(refusal))
        }
        relays?.endStreams { refusalByRules($0.target, $0.actor) }
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

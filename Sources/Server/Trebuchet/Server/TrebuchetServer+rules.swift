internal import Synchronization
internal import TrebuchetActors

/// Authorization that changes while the server runs.
extension TrebuchetServer {
    /// Replaces the closure that the server was created with (`AccessPolicy.authorize`), for existing connections too.
    ///
    /// When it returns, every reactor evaluates the new closure before each call and each new stream, and authorization caches
    /// of the earlier one are invalid. Streams that the new closure rejects end with an error, in batches of connections right
    /// after that. Calls that have started continue; calls that wait for the activation of their actor are decided again. The rules
    /// file of collections and rooms is another thing: see
    /// `replaceRules` of the services.
    ///
    /// In a cluster each server has a separate closure: replace it at each. The closure of the client's server decides when a shared
    /// stream, sent once to that server for all its clients, ends.
    ///
    /// - Precondition: The server was created with `AccessPolicy.authorize`. Otherwise it would run without authorization until
    ///   this call.
    /// - Parameters:
    ///   - cachesGrants: Whether decisions are cached; see `AccessPolicy.cachesGrants`. Default false.
    ///   - authorize: The new closure; see `AccessPolicy.authorize`.
    public func replaceAuthorization(cachesGrants: Bool = false, _ authorize: @escaping AccessPolicy.Authorize) async {
        precondition(
            access.authorize != nil,
            "replaceAuthorization requires a server that was created with AccessPolicy.authorize")
        let rules = AccessRules(mayCall: authorize, cachesGrants: cachesGrants)
        for shard in shards { await shard.reactor.perform { shard.replaceRules(rules) } }
    }

    /// Invalidates earlier decisions of `AccessPolicy.authorize`. Call it when the closure's decisions change.
    ///
    /// Authorization caches (`AccessPolicy.cachesGrants`) are invalid at once. Streams that the closure now rejects end with an
    /// error, in batches of connections right after that. Calls that have started continue; calls that wait for the activation of
    /// their actor are decided again. Callable from any thread; in a cluster, at each server.
    public func invalidateAuthorizationCache() {
        context.rules.add(1, ordering: .releasing)
        for shard in shards { shard.reactor.execute { shard.endRefusedStreams() } }
    }
}

extension ServerShard {
    /// The number of connections whose streams are checked in one batch; other work runs between batches.
    private static let examinedAtOnce = 64

    fileprivate func replaceRules(_ new: AccessRules) {
        // After the server has ended, its remaining parts permit nothing.
        guard !siblings.isEmpty else { return }
        rules = new
        // Increment it after setting the rules, so that no decision of the earlier rules is cached as one of the new rules.
        context.rules.add(1, ordering: .releasing)
        endRefusedStreams()
    }

    /// Ends the streams that the current rules reject.
    fileprivate func endRefusedStreams() {
        if rules != nil { endRefusedStreams(of: Array(connections.keys)[...]) }
    }

    private func endRefusedStreams(of names: ArraySlice<UInt64>) {
        for name in names.prefix(Self.examinedAtOnce) { connections[name]?.endRefusedStreams() }
        let rest = names.dropFirst(Self.examinedAtOnce)
        if !rest.isEmpty { reactor.execute { self.endRefusedStreams(of: rest) } }
    }
}

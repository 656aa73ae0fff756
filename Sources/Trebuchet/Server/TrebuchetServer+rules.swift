internal import Synchronization
internal import TrebuchetActors

/// Rules that change while the server runs.
extension TrebuchetServer {
    /// Replaces the rules that the server was created with (`AccessPolicy.authorize`), for existing connections too.
    ///
    /// When it returns, every reactor evaluates the new rules before each call and each new stream, and authorization caches of
    /// earlier rules are invalid. Streams that the new rules reject end with an error, in batches of connections right after that.
    /// In-flight calls continue.
    ///
    /// In a cluster each node has separate rules: replace them at each. The rules of the client's node decide when a shared stream,
    /// sent once to that node for all its clients, ends.
    ///
    /// - Precondition: The server was created with rules. Otherwise it would run without any until this call.
    /// - Parameters:
    ///   - cachesGrants: Whether decisions are cached; see `AccessPolicy.cachesGrants`. Default false.
    ///   - authorize: The new rules; see `AccessPolicy.authorize`.
    public func replaceAuthorization(cachesGrants: Bool = false, _ authorize: @escaping AccessPolicy.Authorize) async {
        precondition(access.authorize != nil, "pass rules to the server's initializer, as AccessPolicy.authorize")
        let rules = AccessRules(mayCall: authorize, cachesGrants: cachesGrants)
        for shard in shards { await shard.reactor.perform { shard.replaceRules(rules) } }
    }

    /// Invalidates earlier decisions of `AccessPolicy.authorize`. Call it when the closure's decisions change.
    ///
    /// Authorization caches (`AccessPolicy.cachesGrants`) are invalid at once. Streams that the closure now rejects end with an
    /// error, in batches of connections right after that. In-flight calls continue. Callable from any thread; in a cluster, at
    /// each node.
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

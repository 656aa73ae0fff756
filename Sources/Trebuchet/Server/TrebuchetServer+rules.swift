internal import Synchronization
internal import TrebuchetActors

/// Rules that change while the server runs.
extension TrebuchetServer {
    /// Replaces the rules that the server was made with (`AccessPolicy.authorize`), for the connections that exist too.
    ///
    /// When it returns, every reactor asks the new rules before each call and each new stream, and grants of earlier rules are
    /// forgotten. Streams that the new rules refuse end with an error, in batches of connections right after that. Calls that are
    /// under way go on.
    ///
    /// In a cluster each node has rules of its own: replace them at each. A stream that the client's node takes once for all of its clients
    /// ends by the rules of that node.
    ///
    /// - Precondition: The server was made with rules. One without any would run without them until they come.
    /// - Parameters:
    ///   - keepsGrants: as `AccessPolicy.keepsGrants`. Default false.
    ///   - authorize: as `AccessPolicy.authorize`.
    public func replaceRules(keepsGrants: Bool = false, _ authorize: @escaping AccessPolicy.Authorize) async {
        precondition(access.authorize != nil, "give the server rules when it is made, as AccessPolicy.authorize")
        let rules = AccessRules(mayCall: authorize, keepsGrants: keepsGrants)
        for shard in shards { await shard.reactor.perform { shard.replaceRules(rules) } }
    }

    /// Asks the closure of `AccessPolicy.authorize` again where it decides otherwise from now on.
    ///
    /// Grants that are kept (`AccessPolicy.keepsGrants`) are forgotten at once. Streams that the closure refuses now end with an error,
    /// in batches of connections right after that. Calls that are under way go on. From anywhere; in a cluster, at each node.
    public func rulesDidChange() {
        parts.rules.add(1, ordering: .releasing)
        for shard in shards { shard.reactor.execute { shard.endRefusedStreams() } }
    }
}

extension ServerShard {
    /// Connections whose streams are looked at in one go; others have their turn between.
    private static let examinedAtOnce = 64

    fileprivate func replaceRules(_ new: AccessRules) {
        // The server has ended: what is left of it permits nothing.
        guard !siblings.isEmpty else { return }
        rules = new
        // Behind that, so that no grant of the earlier rules counts as one of these.
        parts.rules.add(1, ordering: .releasing)
        endRefusedStreams()
    }

    /// Ends the streams that the rules of now refuse.
    fileprivate func endRefusedStreams() {
        if rules != nil { endRefusedStreams(of: Array(connections.keys)[...]) }
    }

    private func endRefusedStreams(of names: ArraySlice<UInt64>) {
        for name in names.prefix(Self.examinedAtOnce) { connections[name]?.endRefusedStreams() }
        let rest = names.dropFirst(Self.examinedAtOnce)
        if !rest.isEmpty { reactor.execute { self.endRefusedStreams(of: rest) } }
    }
}

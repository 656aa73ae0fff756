internal import Distributed
internal import Synchronization
internal import TrebuchetActors

/// What services ask of the server that hosts them.
extension TrebuchetServer {
    /// Takes a store for a service of this server, until the server has shut down. Throws `inUse` while another server of this
    /// process has it for the same use.
    package func take(_ store: any StateStore, for use: String) throws(StateStoreError) {
        let claim = otherClaims.withLock { claims in
            if let claim = claims.first(where: { $0.isAbout(store, for: use) }) { return claim }
            let claim = StoreClaim(store, for: use)
            claims.append(claim)
            return claim
        }
        try claim.take()
    }

    /// Where actors are kept that live on one node of several; nil at a server that is none.
    package var clusterStore: (any PartitionedStore)? { parts.nodes?.store }

    /// Whether an actor of that name is to be here: at a server that is no node all are.
    package func owns(_ name: String) -> Bool { parts.nodes?.owns(name) ?? true }

    /// Lets actors go that another node may own, as far as they are these. Who calls or observes them next has them made anew, here or
    /// elsewhere, of what is kept.
    package func giveUp(_ actors: [(name: String, actor: any DistributedActor)]) async {
        let records = actors.compactMap { name, actor in
            directory.record(ActorName(name)).flatMap {
                $0.actor.map { ObjectIdentifier($0) } == ObjectIdentifier(actor) ? $0 : nil
            }
        }
        await release(records, inOrder: false)
    }

    /// Makes `authorize` decide about the owner of a helper in place of the helper, so that helpers need no rules of the app. A service
    /// calls it before it exposes the first helper.
    ///
    /// - Parameters:
    ///   - prefix: the beginning of the names of the helpers.
    ///   - owner: returns the actor and the target that `authorize` decides about, given the whole name of a helper.
    package func authorize(
        helpers prefix: String, as owner: @escaping @Sendable (_ actorID: String) -> (actorID: String, target: String)?
    ) {
        for shard in shards { shard.reactor.run { shard.helpers.add(prefix, owner) } }
    }

    /// A line for the server's log.
    package func log(_ line: String, _ level: ServerEvent.Level = .notice) { parts.logAt(level, line) }

    /// What callers are told of an error that is not for them: a number, under which its text goes to the log.
    package func disclose(_ error: any Error, of what: String) -> String {
        parts.disclosure.tell(error, of: what).message
    }

    /// The actor of a name, made when it is one on demand that is not there; nil when there is none of the type. For services
    /// that look after their own actors.
    package func actor<A: DistributedActor>(_ type: A.Type, named name: String) async throws -> A? {
        if let actor = parts.directory.record(ActorName(name))?.actor as? A { return actor }
        return try await parts.directory.activate(ActorName(name), for: nil)?.value.actor as? A
    }
}

/// A part of a service that lives on one node of several.
package protocol PlacedPart: DistributedActor where ActorSystem == TrebuchetActorSystem {
    /// It is here no more: another node owns it, or is about to. Nobody calls or observes it here any more.
    func didMove()
}

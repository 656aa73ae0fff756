package import Bytes
internal import Distributed
internal import Synchronization
internal import TrebuchetActors

/// The interface of a server for the services that it hosts.
extension TrebuchetServer {
    /// Claims a store for a service of this server until the server has shut down. Throws `inUse` if another server of this
    /// process has claimed it for the same use.
    package func claimStore(_ store: any StateStore, for use: String) throws(StateStoreError) {
        let claim = otherClaims.withLock { claims in
            if let claim = claims.first(where: { $0.isClaim(on: store, for: use) }) { return claim }
            let claim = StoreOwnership(store, for: use)
            claims.append(claim)
            return claim
        }
        try claim.acquire()
    }

    /// The store of actors that live on one server of several; nil without a cluster.
    package var clusterStore: (any PerActorStore)? { context.router?.store }

    /// Returns whether this server owns the actor of a name; always true without a cluster.
    package func owns(_ name: String) -> Bool { context.router?.owns(name) ?? true }

    /// Deactivates the given actors, if their names still refer to them, since another server may own them. The next call or
    /// subscription activates them from their persisted state, here or on another server. Does nothing without a cluster.
    package func giveUp(_ actors: [(name: String, actor: any DistributedActor)]) async {
        let records = actors.compactMap { name, actor in
            directory.record(ActorName(name)).flatMap {
                $0.actor.map { ObjectIdentifier($0) } == ObjectIdentifier(actor) ? $0 : nil
            }
        }
        await context.router?.release(records, of: self)
    }

    /// Makes `authorize` decide about the owner of a helper in place of the helper, so that helpers need no rules of the app. A
    /// service calls it before it exposes the first helper.
    ///
    /// - Parameters:
    ///   - prefix: The beginning of the names of the helpers.
    ///   - owner: Returns the actor and the target that `authorize` decides about, given the full name of a helper.
    package func authorize(
        helpers prefix: String, as owner: @escaping @Sendable (_ actorID: String) -> (actorID: String, target: String)?
    ) {
        for shard in shards { shard.reactor.run { shard.helpers.addOwner(prefix, owner) } }
    }

    /// The budget of `ServerLimits.memory.total`, in which services count the memory that they hold for clients.
    package var memoryBudget: MemoryBudget { context.memory }

    /// Writes a line to the server log.
    package func log(_ line: String, _ level: ServerEvent.Level = .notice) { context.logAt(level, line) }

    /// Returns the text that callers get in place of an undisclosed error: a number, under which the error is logged.
    package func disclose(_ error: any Error, of what: String) -> String {
        context.disclosure.disclose(error, of: what).message
    }

    /// Returns the actor of a name, and activates it if necessary; nil if no actor of the type exists. For services that manage
    /// their own actors.
    package func actor<A: DistributedActor>(_ type: A.Type, named name: String) async throws -> A? {
        if let actor = context.directory.record(ActorName(name))?.actor as? A { return actor }
        do {
            return try await context.directory.activate(ActorName(name), for: nil)?.value.actor as? A
        } catch {
            throw CallerRefusal.cause(of: error)
        }
    }
}

/// An actor of a service that lives on one server of several.
package protocol ClusteredServiceActor: DistributedActor where ActorSystem == TrebuchetActorSystem {
    /// Called after another server became the owner, or before it does. No more calls or subscriptions reach the actor here.
    func didMove()
}

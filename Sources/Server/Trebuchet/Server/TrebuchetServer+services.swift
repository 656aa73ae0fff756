package import Bytes
internal import Distributed
internal import Networking
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

/// Metrics of a server for its program.
extension TrebuchetServer {
    /// The number of recorded responses of `@Idempotent` calls.
    package var rememberedAnswerCount: Int { context.idempotencyCache.count }

    /// Returns the number of remote subscriptions of a state of an exposed actor.
    package func subscriberCount(of name: String, _ stream: String) async -> Int {
        await source(of: name, stream)?.subscriberCount ?? 0
    }

    /// Returns the number of versions of a state that were encoded so far.
    package func encodeCount(of name: String, _ stream: String) async -> Int {
        await source(of: name, stream)?.encodeCount ?? 0
    }

    /// Returns the number of broadcasters of a state: per reactor and protocol version.
    package func broadcasterCount(of name: String, _ stream: String) async -> Int {
        await source(of: name, stream)?.broadcasterCount ?? 0
    }

    /// Returns the number of different filters of a state of an exposed actor.
    package func filterCount(of name: String, _ stream: String) async -> Int {
        await source(of: name, stream)?.filterCount ?? 0
    }

    /// Advances the clock of idle times, and deactivates the actors that are due.
    package func advanceIdleTime(by time: Duration) async {
        context.idleClock.advance(by: time)
        for shard in shards { await shard.reactor.perform { shard.checkIdleActors() } }
    }

    /// The number of times that work blocked a reactor of the server for more than 100 ms; the log names the work. The servers
    /// of a process share reactors.
    public var reactorStallCount: Int { shards.reduce(0) { $0 + $1.reactor.stallCount } }

    /// The number of active actors.
    package var actorCount: Int { directory.count }

    /// The buffered memory for peers in bytes: calls, messages and versions.
    package var bufferedBytes: Int { context.memory.usedBytes }

    /// The number of clients that may have exported actors.
    package var hostingClientCount: Int { context.hosting.count }

    /// The number of references to client actors.
    package var clientActorCount: Int { context.quotas.count(.clientActors) }

    /// The number of in-flight calls to client actors.
    package var callsToClientsCount: Int { context.quotas.count(.clientCalls) }

    private func source(of name: String, _ stream: String) async -> StreamProducer? {
        guard let record = directory.record(ActorName(name)) else { return nil }
        return await withCheckedContinuation { continuation in
            record.executeStreamingTarget(stream) { continuation.resume(returning: $0) }
        }
    }

    /// The number of open connections.
    public var connectionCount: Int {
        get async {
            var count = 0
            for shard in shards { count += await shard.reactor.perform { shard.clientCount } }
            return count
        }
    }
}

/// Counts for tests and tools.
extension TrebuchetServer {
    /// Collects the current counts from each reactor in turn.
    package func counters() async -> ServerCounters {
        var sum = ServerCounters()
        for shard in shards {
            let part = await shard.reactor.perform {
                var part = ServerCounters()
                part.connections = shard.clientCount
                for connection in shard.connections.values {
                    part.callsUnderWay += connection.callsUnderWay
                    part.streams += connection.streams.count + connection.streams.starting.count
                }
                part.callsWaiting = shard.waitingCount
                part.broadcasters = shard.states.broadcasterCount
                part.timers = shard.reactor.liveTimerCount
                return part
            }
            sum.connections += part.connections
            sum.callsUnderWay += part.callsUnderWay
            sum.callsWaiting += part.callsWaiting
            sum.streams += part.streams
            sum.broadcasters += part.broadcasters
            sum.timers += part.timers
        }
        sum.recordedResponses = rememberedAnswerCount
        sum.actorsOnDemand = context.quotas.count(.actorsOnDemand)
        sum.activations = context.directory.activatingCount
        return sum
    }

    /// The names of activated actors with their in-flight calls; nil for a deactivated one.
    package var actorsOnDemand: [(name: String, calls: Int?)] {
        context.directory.onDemand.records.map { ($0.name, $0.actorInstance.userCount) }
    }
}

extension TrebuchetServer {
    /// Lets the time of day jump, for alarms only.
    package func shiftAlarmClock(by time: Duration) async {
        alarmClock.shift(by: time)
        for scheduler in alarms { await scheduler.checkClock() }
    }
}

internal import Bytes
internal import Networking
internal import TrebuchetActors

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

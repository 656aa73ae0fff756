internal import Bytes
internal import Networking
internal import TrebuchetActors

/// What can be seen of a server from outside.
extension TrebuchetServer {
    /// How many answers of `@Idempotent` calls are kept now.
    package var rememberedAnswerCount: Int { parts.answers.count }

    /// How many streams carry a state of an exposed actor over the network now.
    package func subscriberCount(of name: String, _ stream: String) async -> Int {
        await source(of: name, stream)?.subscriberCount ?? 0
    }

    /// How many versions of a state of an exposed actor were encoded so far.
    package func encodeCount(of name: String, _ stream: String) async -> Int {
        await source(of: name, stream)?.encodeCount ?? 0
    }

    /// On how many reactors, and for how many versions of the protocol, a state is kept ready.
    package func broadcasterCount(of name: String, _ stream: String) async -> Int {
        await source(of: name, stream)?.broadcasterCount ?? 0
    }

    /// How many different filters look at a state of an exposed actor.
    package func filterCount(of name: String, _ stream: String) async -> Int {
        await source(of: name, stream)?.filterCount ?? 0
    }

    /// Turns the clock on by which actors rest, and looks for those that have rested enough.
    package func advanceIdleTime(by time: Duration) async {
        parts.idleClock.advance(by: time)
        for shard in shards { await shard.reactor.perform { shard.lookForIdle() } }
    }

    /// How often so far something held a reactor of the server, and all others who live there, for more than 100 ms; the log
    /// says what it was. Reactors are shared by the servers of a process.
    public var stallCount: Int { shards.reduce(0) { $0 + $1.reactor.stallCount } }

    /// Actors that stand ready.
    package var actorCount: Int { directory.count }

    /// Calls, messages and versions that are held for peers, in bytes.
    package var heldBytes: Int { parts.memory.usedBytes }

    /// Clients of whose actors references may be held.
    package var hostingClientCount: Int { parts.hosting.count }

    /// References to actors that live in clients.
    package var clientActorCount: Int { parts.shares.count(.clientActors) }

    /// Calls to such actors that are under way.
    package var callsToClientsCount: Int { parts.hosting.quotas.calls.count }

    private func source(of name: String, _ stream: String) async -> StreamHub? {
        guard let record = directory.record(ActorName(name)) else { return nil }
        return await withCheckedContinuation { continuation in
            record.executeStreamingTarget(stream) { continuation.resume(returning: $0) }
        }
    }

    /// Connections that are open now.
    public var connectionCount: Int {
        get async {
            var count = 0
            for shard in shards { count += await shard.reactor.perform { shard.clientCount } }
            return count
        }
    }
}

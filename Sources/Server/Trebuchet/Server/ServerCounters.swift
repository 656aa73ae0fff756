internal import Networking

/// The current operations and resources of a server, over all its reactors.
package struct ServerCounters: Codable, Sendable, Equatable {
    package var connections = 0
    /// The number of calls without a response.
    package var callsUnderWay = 0
    /// The number of calls and streams that wait for an activation.
    package var callsWaiting = 0
    package var streams = 0
    /// The number of observed states and event streams, per reactor and protocol version.
    package var broadcasters = 0
    /// The number of timers on the server's reactors, including those of clients in the same process.
    package var timers = 0
    /// The number of recorded responses of `@Idempotent` calls.
    package var recordedResponses = 0
    package var actorsOnDemand = 0
    /// The number of actors that are being activated or loaded.
    package var activations = 0

    package init() {}
}

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

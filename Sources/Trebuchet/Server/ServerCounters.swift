internal import Networking

/// What a server has under way and what it keeps, over all its reactors.
package struct ServerCounters: Codable, Sendable, Equatable {
    package var connections = 0
    /// Calls that are not answered yet.
    package var callsUnderWay = 0
    /// Calls and streams that wait for an actor to be made.
    package var callsWaiting = 0
    package var streams = 0
    /// States and events that somebody observes, per reactor and version of the protocol.
    package var broadcasters = 0
    /// Of all that runs on the server's reactors, clients in the same process included.
    package var timers = 0
    /// Of `@Idempotent` calls.
    package var keptAnswers = 0
    package var actorsOnDemand = 0
    /// Actors that are being made or loaded.
    package var activations = 0

    package init() {}
}

extension TrebuchetServer {
    /// Counts what is there now: each reactor for itself, one after the other.
    package func counters() async -> ServerCounters {
        var sum = ServerCounters()
        for shard in shards {
            let part = await shard.reactor.perform {
                var part = ServerCounters()
                part.connections = shard.clientCount
                for connection in shard.connections.values {
                    part.callsUnderWay += connection.callsUnderWay
                    part.streams += connection.streams.count + connection.beginning.count
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
        sum.keptAnswers = rememberedAnswerCount
        sum.actorsOnDemand = parts.shares.count(.actorsOnDemand)
        sum.activations = parts.directory.activatingCount
        return sum
    }

    /// The names of actors that were made on demand, with the calls that are under way; nil for one that has been let go.
    package var actorsOnDemand: [(name: String, calls: Int?)] {
        parts.directory.onDemand.records.map { ($0.name, $0.life.userCount) }
    }
}

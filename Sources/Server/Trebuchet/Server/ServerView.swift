internal import Bytes
package import Networking
internal import Platform
package import TrebuchetActors

/// A read-only view of a running server: its actors, connections, metrics and store. It retains the server.
///
/// Modules that observe a server use it together with event handlers. The server does not know them.
package struct ServerView: Sendable {
    package let server: TrebuchetServer

    fileprivate init(_ server: TrebuchetServer) { self.server = server }

    /// The events of the server.
    package var events: EventBus { server.context.events }

    /// The reactors of the server, in their order.
    package var reactors: [Reactor] { server.shards.map(\.reactor) }

    /// Writes a line to the log of the server.
    package var log: @Sendable (String) -> Void { server.context.log }

    package var status: TrebuchetServer.Status { server.status }

    // MARK: Queries of reactors

    /// The time within which a reactor must respond.
    package static var responseTimeout: Duration { TrebuchetServer.answerTime }

    /// Runs a query on a reactor; returns nil if it does not respond in time.
    package static func query<Answer: Sendable>(
        _ reactor: Reactor, _ question: @escaping @Sendable () -> Answer
    ) async -> Answer? {
        await TrebuchetServer.query(reactor, timeout: responseTimeout, question)
    }

    private func query<Answer: Sendable>(
        _ shard: ServerShard, _ question: @escaping @Sendable () -> Answer
    ) async throws(TrebuchetError) -> Answer {
        guard let answer = await Self.query(shard.reactor, question) else {
            throw TrebuchetError(.unavailable, "\(shard.reactor.name) does not respond")
        }
        return answer
    }

    // MARK: Actors

    /// Finds an active actor by its name. It does not retain the server, and finds none after the server's end.
    package typealias ActorFinder = @Sendable (_ name: String) -> ActorRecord?

    /// All actors: the active ones, those that must be loaded first, and the patterns of virtual actors.
    package var actors:
        (ready: [ActorRecord], unloaded: [(String, ActorType)], patterns: [(prefix: String, type: ActorType)])
    {
        server.directory.all
    }

    /// Returns whether the inspector may show states of actors of a type, and arguments of their calls.
    package func isInspectable(_ type: ActorType) -> Bool { !server.context.hiddenTypes.contains(type) }

    /// Returns an active actor. Never activates one.
    package func actor(_ name: String) -> ActorRecord? { server.directory.record(ActorName(name)) }

    package var actorFinder: ActorFinder {
        { [weak server] name in server?.directory.record(ActorName(name)) }
    }

    /// Returns the name of an actor's reactor; nil for an actor without one.
    package func reactorName(of record: ActorRecord) -> String? {
        server.shards.first { $0.states === record.home }?.reactor.name
    }

    /// The shard that has the streams of actors without a reactor.
    package var pool: SystemShard { server.shards[0].states }

    // MARK: Connections

    /// A connection at the time of the query.
    package struct Connection: Sendable {
        package let peer: ServerEvent.Peer
        package let protocolVersion: Int
        package let reactor: String
        /// The time since it was opened, in nanoseconds.
        package let age: UInt64
        package let streams: Int
        /// The number of in-flight calls.
        package let calls: Int
        package let bufferedBytes: Int
        package let isWritable: Bool
        package let isDraining: Bool
        /// True for a connection that another server forwards.
        package let isForwarded: Bool
    }

    /// Returns the connections at some positions, the oldest first, and the number of all. Collects the numbers from all
    /// reactors, and then details for these positions only.
    ///
    /// - Throws: `unavailable` if a reactor does not respond.
    package func connections(
        at positions: Range<Int>
    ) async throws(TrebuchetError) -> (connections: [Connection], count: Int) {
        var numbers: [(number: UInt64, shard: Int)] = []
        for (index, shard) in server.shards.enumerated() {
            let own = try await query(shard) { Array(shard.connections.keys) }
            numbers += own.map { ($0, index) }
        }
        numbers.sort { $0.number < $1.number }
        var found: [Connection] = []
        for (index, part) in Dictionary(grouping: numbers[positions.clamped(to: numbers.indices)], by: \.shard) {
            let shard = server.shards[index]
            // A connection that closed meanwhile is omitted.
            found += try await query(shard) { part.compactMap { shard.connections[$0.number].map { Connection($0) } } }
        }
        found.sort { $0.peer.connection < $1.peer.connection }
        return (found, numbers.count)
    }

    // MARK: Metrics, store

    /// Returns all metrics.
    ///
    /// - Throws: `unavailable` if a reactor does not respond.
    package func metrics() async throws(TrebuchetError) -> MetricList { try await server.metricList() }

    /// The type of the store: the server's own, or else that of its router; nil without one.
    package var storeType: String? { server.shards[0].writers.first.map { "\(type(of: $0.store))" } }

    /// Returns the failure of the last write to a store; nil if it succeeded.
    package func storeFailure() async -> String? {
        var failure: String?
        for shard in server.shards {
            let found = await Self.query(shard.reactor) { shard.writers.lazy.compactMap(\.failure).first }
            failure = failure ?? (found ?? nil)
        }
        return failure
    }
}

extension ServerView.Connection {
    /// Describes the connection now. Isolated to its reactor.
    fileprivate init(_ connection: ServerConnection) {
        let link = connection.link
        self.init(
            peer: connection.peer, protocolVersion: link is LegacyLink ? 2 : 3, reactor: connection.shard.reactor.name,
            age: MonotonicClock.now &- connection.opened, streams: connection.streams.count,
            calls: connection.running.count, bufferedBytes: max(link.memory?.bufferedBytes ?? 0, link.pendingBytes),
            isWritable: connection.isWritable, isDraining: connection.isDraining,
            isForwarded: connection.upstream != nil)
    }
}

extension TrebuchetServer {
    /// A read-only view of the server, for modules of this package that observe it.
    package var view: ServerView { ServerView(self) }
}

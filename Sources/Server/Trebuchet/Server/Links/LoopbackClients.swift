internal import Networking
internal import Synchronization
internal import Transports
internal import TrebuchetActors
internal import TrebuchetClient

/// In-process client connections of a server to itself, one per reactor, created at the first use. Over them its actors call
/// and observe other actors by name, on any server, as a client would.
final class LoopbackClients: Sendable {
    private let shards: [ServerShard]
    /// The clients by reactor index; nil after the server has ended.
    private let clients = Mutex<[Int: TrebuchetClient]?>([:])

    init(_ shards: [ServerShard]) { self.shards = shards }

    /// Returns the connection for an actor name. It is the same for all calls from one actor, and for all calls to one actor
    /// from outside, so that calls keep their order.
    func route(to name: String) -> (any RemoteServer)? {
        let index =
            shards.firstIndex { $0.reactor.isCurrent }
            ?? Int(UInt(bitPattern: ActorName(name).hashValue) % UInt(shards.count))
        return clients.withLock { clients in
            if let client = clients?[index] { return client.remoteServer }
            guard clients != nil else { return nil }
            let shard = shards[index]
            var options = TrebuchetClient.Options()
            options.callsInFlight = shard.limits.ofServer.calls
            options.messageSize = shard.limits.messages.outboundBytes
            options.serverMessageSize = shard.limits.messages.inboundBytes
            options.callTimeout = shard.limits.calls.timeout
            options.pingInterval = nil
            options.onUndecodable = shard.system.reportUndecodable
            let client = TrebuchetClient(
                transport: LoopbackTransport(shard: shard), options: options, on: shard.reactor)
            client.connectIfNeeded()
            clients?[index] = client
            return client.remoteServer
        }
    }

    /// Closes the connections when the server ends: in-flight calls end with `unknownOutcome`, and further calls are
    /// impossible.
    func close() {
        let closed = clients.withLock { clients in
            defer { clients = nil }
            return clients
        }
        for client in (closed ?? [:]).values { Task { await client.close() } }
    }
}

/// Connects a client on a reactor of the server to that reactor.
private struct LoopbackTransport: ClientTransport {
    let shard: ServerShard

    var address: String { "this server" }
    var addressIdentifiesServer: Bool { false }

    func open(_ request: ConnectionRequest, _ receiver: ConnectionReceiver) async throws {
        let connection = LocalConnection(shard, receiver, largestMessage: request.messageSize)
        await shard.reactor.perform {
            connection.open(shard, caller: Caller(connection: CallerConnection(ofServer: (), isShared: true)))
            receiver.linkDidOpen(connection.clientEnd)
        }
    }
}

internal import Networking
internal import Synchronization
internal import Transports
internal import TrebuchetActors
internal import TrebuchetClient

/// The connections that a server has to itself, one on each reactor, from the first use on: over them its actors call and observe
/// others by name, wherever those live, as a client would.
final class OwnClients: Sendable {
    private let shards: [ServerShard]
    /// By the number of the reactor; nil once the server is gone.
    private let clients = Mutex<[Int: TrebuchetClient]?>([:])

    init(_ shards: [ServerShard]) { self.shards = shards }

    /// The way to an actor: the same for all that one actor calls, and for all that others call of it, so that calls keep their order.
    func way(to name: String) -> (any RemoteServer)? {
        let index =
            shards.firstIndex { $0.reactor.isCurrent }
            ?? Int(UInt(bitPattern: ActorName(name).hashValue) % UInt(shards.count))
        return clients.withLock { clients in
            if let client = clients?[index] { return client.remoteServer }
            guard clients != nil else { return nil }
            let shard = shards[index]
            var options = TrebuchetClient.Options()
            options.callsInFlight = shard.limits.ofServer.calls
            options.messageSize = shard.limits.clientMessageSize
            options.serverMessageSize = shard.limits.messageSize
            options.callTimeout = shard.limits.callTimeout
            options.pingInterval = nil
            options.onUndecodable = shard.system.reportUndecodable
            let client = TrebuchetClient(transport: OwnTransport(shard: shard), options: options, on: shard.reactor)
            client.connectIfNeeded()
            clients?[index] = client
            return client.remoteServer
        }
    }

    /// The server is gone, or goes: calls under way end with `unknownOutcome`, and there are no others.
    func close() {
        let closed = clients.withLock { clients in
            defer { clients = nil }
            return clients
        }
        for client in (closed ?? [:]).values { Task { await client.close() } }
    }
}

/// The way from a reactor of a server to itself.
private struct OwnTransport: ClientTransport {
    let shard: ServerShard

    var address: String { "this server" }
    var addressIdentifiesServer: Bool { false }

    func open(_ request: ConnectionRequest, _ receiver: ConnectionReceiver) async throws {
        let connection = LocalConnection(shard, receiver, largestMessage: request.messageSize)
        await shard.reactor.perform {
            connection.open(shard, caller: Caller(connection: CallerConnection(ofServer: (), isShared: true)))
            receiver.opened(connection.clientEnd)
        }
    }
}

internal import Networking
internal import Synchronization
internal import Transports
internal import WebSockets

extension TrebuchetTransport {
    /// A server in this process, without a socket: the same messages, for tests and previews. For clients only.
    public static func local(_ server: TrebuchetServer) -> TrebuchetTransport {
        TrebuchetTransport(kind: .local(server))
    }
}

/// Clients in this process.
extension TrebuchetServer: LocalServer {
    func connectLocally(_ request: ConnectionRequest, _ receiver: ConnectionReceiver) async throws {
        guard !isStopping else { throw TransportError(.closed, "the server was shut down") }
        var caller: Caller?
        if !access.isOpen {
            // As if it came over the network, but from no origin and no address.
            do {
                caller = try await access.caller(HTTPRequestHead(target: "/", headers: request.headers), from: nil)
            } catch {
                // As a client at the other end of a socket would hear of it.
                let (response, reason) = AccessPolicy.refusal(error, parts.failedHooks)
                throw TransportError(
                    .handshake, "the server refuses the client (\(response.status)): \(reason)",
                    cause: UnexpectedStatus(response.status))
            }
        }
        try await connectLocally(request, receiver, as: caller)
    }

    /// As whom it is known already.
    func connectLocally(
        _ request: ConnectionRequest, _ receiver: ConnectionReceiver, as caller: Caller?
    ) async throws {
        guard !isStopping else { throw TransportError(.closed, "the server was shut down") }
        let index = nextLocal.wrappingAdd(1, ordering: .relaxed).oldValue
        let shard = shards[index % shards.count]
        let connection = LocalConnection(shard, receiver, largestMessage: request.messageSize)
        await shard.reactor.perform { [caller] in connection.open(shard, caller: caller) }
        await receiver.loop.perform { receiver.opened(connection.clientEnd) }
    }
}

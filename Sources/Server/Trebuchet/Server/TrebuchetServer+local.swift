internal import Networking
internal import Synchronization
internal import Transports
internal import WebSockets

extension TrebuchetServer {
    /// Returns a transport to this server for a client with the given principal. `AccessPolicy.authenticate` is skipped, and the
    /// policy still authorizes the principal's calls.
    package func localTransport(as principal: String?) -> TrebuchetTransport {
        TrebuchetTransport(.local(ImpersonatingServer(self, principal)))
    }
}

/// Connects a client in this process as a given principal.
private final class ImpersonatingServer: LocalServer {
    private let server: TrebuchetServer
    private let principal: String?

    init(_ server: TrebuchetServer, _ principal: String?) {
        self.server = server
        self.principal = principal
    }

    func connectLocally(_ request: ConnectionRequest, _ receiver: ConnectionReceiver) async throws {
        let caller = Caller(
            connection: CallerConnection(principal: principal.map { Principal(id: $0) }, remoteAddress: nil))
        try await server.connectLocally(request, receiver, as: caller)
    }
}

/// Connections of clients in this process.
extension TrebuchetServer: LocalServer {
    func connectLocally(_ request: ConnectionRequest, _ receiver: ConnectionReceiver) async throws {
        guard !isStopping else { throw TransportError(.closed, "the server was shut down") }
        var caller: Caller?
        if !access.isOpen {
            // Authenticate like a network client, without an origin and an address.
            do {
                caller = try await access.caller(HTTPRequestHead(target: "/", headers: request.headers), from: nil)
            } catch {
                // Throw the same error as for a client over a socket.
                let (response, reason) = AccessPolicy.refusal(error, context.failedHooks)
                throw TransportError(
                    .handshake, "the server refuses the client (\(response.status)): \(reason)",
                    cause: UnexpectedHTTPStatus(response.status))
            }
        }
        try await connectLocally(request, receiver, as: caller)
    }

    /// Connects a client whose caller is already known.
    func connectLocally(
        _ request: ConnectionRequest, _ receiver: ConnectionReceiver, as caller: Caller?
    ) async throws {
        guard !isStopping else { throw TransportError(.closed, "the server was shut down") }
        let index = nextLocal.wrappingAdd(1, ordering: .relaxed).oldValue
        let shard = shards[index % shards.count]
        let connection = LocalConnection(shard, receiver, largestMessage: request.messageSize)
        await shard.reactor.perform { [caller] in connection.open(shard, caller: caller) }
        await receiver.loop.perform { receiver.linkDidOpen(connection.clientEnd) }
    }
}

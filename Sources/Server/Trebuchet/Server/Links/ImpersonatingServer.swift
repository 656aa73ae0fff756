internal import TrebuchetActors
internal import Transports

/// Connects a client in this process as a given principal.
final class ImpersonatingServer: LocalServer {
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

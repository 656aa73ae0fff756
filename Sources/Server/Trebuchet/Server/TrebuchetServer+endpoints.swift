internal import Networking
internal import Synchronization
package import Transports
package import WebSockets

/// Endpoints for operators: further listeners that end with the server.
extension TrebuchetServer {
    /// An open endpoint.
    struct Endpoint {
        let listener: WebSocketServer
        let shutDown: @Sendable () async -> Void
    }

    /// Opens an endpoint until the server ends, and returns its address.
    ///
    /// - Parameters:
    ///   - name: the name of the endpoint in errors. A server has one endpoint of each name.
    ///   - host: the requested host, for errors.
    ///   - isProtected: whether other machines may reach the endpoint.
    ///   - shutDown: ends the endpoint after its listener.
    /// - Throws: the error of `listen`; `addressInvalid` for an unprotected address that is not loopback, for a second endpoint of
    ///   the name and after the end.
    package func openEndpoint(
        _ name: String, at host: String, isProtected: Bool, shutDown: @escaping @Sendable () async -> Void = {},
        listen: () throws(TransportError) -> WebSocketServer
    ) throws(TransportError) -> SocketAddress {
        let listener = try listen()
        func reject(_ message: String) -> TransportError {
            Task {
                await listener.shutdown()
                await shutDown()
            }
            return TransportError(.addressInvalid, message)
        }
        // A host name may resolve to an address that is not loopback.
        guard isProtected || AdminRequestGuard.isLoopback(listener.address) else {
            throw reject("'\(host)' is reachable from other machines, as \(listener.address)")
        }
        let isFirst = endpoints.withLock { endpoints in
            guard endpoints[name] == nil, !isStopping else { return false }
            endpoints[name] = Endpoint(listener: listener, shutDown: shutDown)
            return true
        }
        guard isFirst else { throw reject("the server already has an \(name) or has shut down") }
        return listener.address
    }

    func closeEndpoints() async {
        let closed = endpoints.withLock { endpoints in
            defer { endpoints = [:] }
            return endpoints.values
        }
        for endpoint in closed {
            await endpoint.listener.stopAccepting()
            await endpoint.listener.refuseUpgrades()
            await endpoint.listener.endPages(within: .seconds(1))
        }
        for endpoint in closed { await endpoint.shutDown() }
    }
}

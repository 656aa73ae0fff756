internal import Synchronization
public import Transports

extension TrebuchetServer {
    /// Adds routes over HTTP on the server's port, for webhooks, scripts and other clients without the protocol:
    ///
    ///     try server.http { routes in
    ///         routes.get("/orders/:id") { request in .text("order \(request.parameters["id"] ?? "")") }
    ///     }
    ///
    /// Routes precede pages of the same path. Requests count in `ServerLimits.http`, and `AccessPolicy.origins` applies to them. In a
    /// browser, only pages of an allowed origin can send other methods than GET; a route that is reachable with cookies must check
    /// more if forms of other pages may send them.
    ///
    /// The server holds the handlers until it has shut down. May be called several times, before the server starts.
    ///
    /// - Throws: `TransportError` of code `addressInvalid` for a path that is invalid or belongs to the server, for two routes with the
    ///   same method and path, and for an authenticated route at a server without `AccessPolicy.authenticate`. Then no route is added.
    public func http(_ build: (inout HTTPRoutes) -> Void) throws(TransportError) {
        // unreachable from data: the program adds its routes.
        precondition(status == .idle, "add routes before the server starts")
        var routes = HTTPRoutes(httpRoutes.withLock { $0 })
        build(&routes)
        if let failure = routes.failure { throw failure }
        if let path = routes.authenticatedPath, access.authenticate == nil {
            throw TransportError(
                .addressInvalid, "route '\(path)' is authenticated, but the server has no AccessPolicy.authenticate")
        }
        let tree = routes.tree
        httpRoutes.withLock { $0 = tree }
    }
}

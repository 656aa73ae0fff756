internal import Synchronization
internal import WebSockets

extension TrebuchetServer {
    /// Serves pages in addition to the actors, for GET and HEAD over HTTP/1.1 on the server's port:
    ///
    ///     try server.pages(.folder("public"), .clientLibrary)
    ///
    /// Earlier sources have precedence; if a folder does not have a page, later sources are tried. A page that no source has is
    /// answered 404. A server without pages answers 426, like a pure WebSocket server.
    ///
    /// All clients that reach the port may read pages: `AccessPolicy.authenticate` applies only to connections to actors.
    /// `AccessPolicy.origins` applies to pages too. `ServerLimits.pages` has the limits.
    ///
    /// Call it before the server starts.
    public func servePages(_ sources: PageSource...) { servePages(sources) }

    /// Serves pages from a list of sources.
    public func servePages(_ sources: [PageSource]) {
        precondition(status == .idle, "add pages before the server starts")
        pageSources.withLock { $0 += sources }
    }

    /// The clients that may read `/schema.json`.
    public enum SchemaReaders: Sendable {
        /// Clients on this machine that use a loopback name (`localhost`, 127.0.0.1, `[::1]`) and no proxy. A proxy is
        /// recognized if it is one of `AccessPolicy.trustedProxies`, or adds `X-Forwarded-For`, `Forwarded` or `Via`. Another
        /// proxy on this machine cannot be recognized.
        case localClients
        /// All clients that reach the port.
        case allClients
    }

    /// Serves `/schema.json`: the names of exposed actors, their types, and the methods, states and events of each type, as far
    /// as dispatch tables list them. Other clients get 404. Without this call a server publishes no schema; call it before the
    /// server starts.
    public func serveSchema(to readers: SchemaReaders) {
        let directory = context.directory
        let page = MemoryPage(
            type: "application/json; charset=utf-8",
            isFor: { request in
                switch readers {
                case .localClients: ServerSchema.isOfLocalClient(request)
                case .allClients: true
                }
            },
            body: { ServerSchema(directory.exposedTypes).json })
        guard let path = try? PageSource.parsePath("/schema.json") else { return }
        servePages(PageSource(kind: .page(page, path: path)))
    }

    /// The number of files that are open because they are being sent.
    package var openPageCount: Int { servedPages.withLock { $0?.open.count ?? 0 } }
}

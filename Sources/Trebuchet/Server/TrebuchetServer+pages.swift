internal import Synchronization
internal import WebSockets

extension TrebuchetServer {
    /// Serves pages beside the actors, to GET and HEAD over HTTP/1.1 on the server's own port:
    ///
    ///     try server.pages(.folder("public"), .clientLibrary)
    ///
    /// What was given first has precedence; a folder that does not have a page leaves it to those behind it. What none has is
    /// answered 404. A server without pages answers 426, as a server of WebSockets alone does.
    ///
    /// Everybody who reaches the port may read pages: `AccessPolicy.authenticate` is asked about connections to actors alone.
    /// `AccessPolicy.origins` holds for pages too. `ServerLimits.pages` has the limits.
    ///
    /// Call it before the server starts.
    public func pages(_ sources: PageSource...) { pages(sources) }

    /// The same for a list.
    public func pages(_ sources: [PageSource]) {
        precondition(status == .idle, "name the pages before the server starts")
        pageSources.withLock { $0 += sources }
    }

    /// Who may read `/schema.json`.
    public enum SchemaReaders: Sendable {
        /// Who connects from this machine, under a name of it (`localhost`, 127.0.0.1, `[::1]`), and is handed on by no proxy:
        /// by none of `AccessPolicy.trustedProxies`, and none that adds `X-Forwarded-For`, `Forwarded` or `Via`. Of another
        /// proxy on this machine nothing can be known.
        case thisMachine
        /// Everybody who reaches the port.
        case everybody
    }

    /// Serves `/schema.json`: the names under which actors are exposed, the types they have, and of each type the targets of its
    /// methods, its states and its events, as far as dispatch tables know them. Others find nothing there. A server says nothing
    /// of that unless this is called; call it before the server starts.
    public func schema(for readers: SchemaReaders) {
        let directory = parts.directory
        let page = MemoryPage(
            type: "application/json; charset=utf-8",
            isFor: { request in
                switch readers {
                case .thisMachine: ServerSchema.isOfThisMachine(request)
                case .everybody: true
                }
            },
            body: { ServerSchema(directory.exposedTypes).json })
        guard let place = try? PageSource.place("/schema.json") else { return }
        pages(PageSource(kind: .page(page, place: place)))
    }

    /// Files that are open now because they are being sent.
    package var openPageCount: Int { servedPages.withLock { $0?.open.count ?? 0 } }
}

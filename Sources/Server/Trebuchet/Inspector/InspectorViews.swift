internal import TrebuchetActors

/// The views of the inspector by their paths below `/inspect/`.
struct InspectorViews: Sendable {
    /// Returns the JSON of a view; nil if the object does not exist.
    typealias Renderer = @Sendable (TrebuchetServer) async throws(TrebuchetError) -> InspectorJSON?

    static let actors = "actors/"

    let recorder: InspectorRecorder
    let writes: Bool

    /// Returns the view at a path; nil for an unknown path.
    func view(at path: String, _ query: InspectorQuery) throws(InspectorQuery.InvalidQuery) -> Renderer? {
        switch path {
        case "overview":
            return { [writes] server async throws(TrebuchetError) in
                try await server.inspectedOverview(writes: writes)
            }
        case "actors":
            let query = try ActorListQuery(query)
            return { server in server.inspectedActors(query) }
        case "connections":
            let page = try ListPage(query)
            return { [recorder] server async throws(TrebuchetError) in
                try await server.inspectedConnections(page, errors: await recorder.lastErrors())
            }
        case "calls":
            let query = try CallListQuery(query)
            return { [recorder] _ in await recorder.calls(query) }
        case "log":
            let query = try LogQuery(query)
            return { [recorder] _ in await recorder.log(query) }
        case "store":
            return { server async throws(TrebuchetError) in try await server.inspectedStore() }
        case "nodes":
            return { server in server.inspectedNodes() }
        default:
            guard let name = path.suffix(after: Self.actors) else { return nil }
            let query = try ActorDetailQuery(try InspectorQuery.decode(Array(name.utf8)), query)
            return { [recorder] server async throws(TrebuchetError) in
                try await server.inspectedActor(query, recorder)
            }
        }
    }

    /// Returns the JSON of a view with its HTTP status.
    static func json(by query: Renderer, _ server: TrebuchetServer) async -> (status: Int, json: InspectorJSON) {
        do throws(TrebuchetError) {
            guard let shown = try await query(server) else {
                return (404, failed("no actor of this name is active; inspection does not activate actors"))
            }
            return (200, shown)
        } catch {
            return (503, failed(error.message))
        }
    }

    static func failed(_ text: String) -> InspectorJSON { .object([("error", .text(text))]) }

    static var nothing: InspectorJSON {
        failed("available paths: /inspect/overview, actors, actors/NAME, connections, calls, log, store and nodes")
    }
}

extension String {
    /// Returns the text after a prefix; nil if it is empty or the prefix does not match.
    func suffix(after prefix: String) -> Substring? {
        hasPrefix(prefix) && utf8.count > prefix.utf8.count ? dropFirst(prefix.count) : nil
    }
}

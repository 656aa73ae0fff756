internal import Trebuchet
internal import TrebuchetActors

/// The views of the inspector by their paths below `/inspect/`.
struct InspectorViews: Sendable {
    /// Returns the JSON of a view; nil if the object does not exist.
    typealias Renderer = @Sendable (ServerView) async throws(TrebuchetError) -> InspectorJSON?

    static let actors = "actors/"

    let recorder: InspectorRecorder
    let writes: Bool

    /// Returns the view at a path; nil for an unknown path.
    func view(at path: String, _ query: InspectorQuery) throws(InspectorQuery.InvalidQuery) -> Renderer? {
        switch path {
        case "overview":
            return { [writes] view async throws(TrebuchetError) in
                try await view.inspectedOverview(writes: writes)
            }
        case "actors":
            let query = try ActorListQuery(query)
            return { view in view.inspectedActors(query) }
        case "connections":
            let page = try ListPage(query)
            return { [recorder] view async throws(TrebuchetError) in
                try await view.inspectedConnections(page, errors: await recorder.lastErrors())
            }
        case "calls":
            let query = try CallListQuery(query)
            return { [recorder] _ in await recorder.calls(query) }
        case "log":
            let query = try LogQuery(query)
            return { [recorder] _ in await recorder.log(query) }
        case "store":
            return { view async throws(TrebuchetError) in try await view.inspectedStore() }
        case "nodes":
            return { view in view.inspectedNodes() }
        default:
            guard let name = path.suffix(after: Self.actors) else { return nil }
            let query = try ActorDetailQuery(try InspectorQuery.decode(Array(name.utf8)), query)
            return { [recorder] view async throws(TrebuchetError) in
                try await view.inspectedActor(query, recorder)
            }
        }
    }

    /// Returns the JSON of an answer with its HTTP status.
    static func json(
        _ answer: @Sendable () async throws(TrebuchetError) -> InspectorJSON?
    ) async -> (status: Int, json: InspectorJSON) {
        do throws(TrebuchetError) {
            guard let shown = try await answer() else {
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

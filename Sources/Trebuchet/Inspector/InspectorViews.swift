internal import TrebuchetActors

/// What can be looked at, by the paths that it has as JSON, behind `/inspect/`.
struct InspectorViews: Sendable {
    /// Nil of what is not there.
    typealias Look = @Sendable (TrebuchetServer) async throws(TrebuchetError) -> InspectorJSON?

    static let actors = "actors/"

    let recorder: InspectorRecorder
    let writes: Bool

    /// Nil for a path that leads nowhere.
    func look(at path: String, _ query: InspectorQuery) throws(InspectorQuery.Refused) -> Look? {
        switch path {
        case "overview":
            return { [writes] server async throws(TrebuchetError) in
                try await server.inspectedOverview(writes: writes)
            }
        case "actors":
            let look = try ActorsLook(query)
            return { server in server.inspectedActors(look) }
        case "connections":
            let page = try InspectedPage(query)
            return { [recorder] server async throws(TrebuchetError) in
                try await server.inspectedConnections(page, errors: await recorder.lastErrors())
            }
        case "calls":
            let look = try CallsLook(query)
            return { [recorder] _ in await recorder.calls(look) }
        case "log":
            let look = try LogLook(query)
            return { [recorder] _ in await recorder.log(look) }
        case "store":
            return { server async throws(TrebuchetError) in try await server.inspectedStore() }
        case "nodes":
            return { server in server.inspectedNodes() }
        default:
            guard let name = path.behind(Self.actors) else { return nil }
            let look = try ActorLook(try InspectorQuery.decode(Array(name.utf8)), query)
            return { [recorder] server async throws(TrebuchetError) in
                try await server.inspectedActor(look, recorder)
            }
        }
    }

    /// What that shows, with the status that it has as an answer to a request.
    static func shown(by look: Look, _ server: TrebuchetServer) async -> (status: Int, json: InspectorJSON) {
        do throws(TrebuchetError) {
            guard let shown = try await look(server) else {
                return (404, failed("none of this name stands ready here, and looking makes none"))
            }
            return (200, shown)
        } catch {
            return (503, failed(error.message))
        }
    }

    static func failed(_ text: String) -> InspectorJSON { .object([("error", .text(text))]) }

    static var nothing: InspectorJSON {
        failed("there are /inspect/overview, actors, actors/NAME, connections, calls, log, store and nodes")
    }
}

extension String {
    /// What follows a beginning; nil where there is nothing, or it is another one.
    func behind(_ beginning: String) -> Substring? {
        hasPrefix(beginning) && utf8.count > beginning.utf8.count ? dropFirst(beginning.count) : nil
    }
}

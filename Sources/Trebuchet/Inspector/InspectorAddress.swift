internal import Networking
internal import Transports
internal import TrebuchetActors
internal import WebSockets

/// Answers who looks inside.
struct InspectorAddress: Sendable {
    private let door: OperatorDoor
    private let writes: Bool
    private let files = InspectorFiles()
    let recorder: InspectorRecorder

    init(_ server: TrebuchetServer, token: String, writes: Bool) {
        door = OperatorDoor(server, name: "inspector", token: token, takesOwnPages: true)
        recorder = InspectorRecorder(server.parts.events, on: server.shards[0])
        self.writes = writes
    }

    func listen(port: Int, on reactors: ReactorGroup) throws(TransportError) -> WebSocketServer {
        try door.listen(host: "127.0.0.1", port: port, tls: nil, on: reactors, takesPost: writes) { request, address in
            // These say nothing of the server: the page asks for all that it shows, with the token.
            if let file = files[request.path], request.method != "POST" { return .page(file) }
            if let refusal = door.refusal(of: request, from: address) { return .last(refusal) }
            do throws(InspectorQuery.Refused) {
                let query = try InspectorQuery(request.query)
                guard request.method != "POST" else { return try change(request.path, query, address) }
                return try answer(request.path, query)
            } catch {
                return .last(Self.failed(400, error.text).response)
            }
        }
    }

    private func answer(_ path: String, _ query: InspectorQuery) throws(InspectorQuery.Refused) -> PlainAnswer {
        switch path {
        case "/inspect/overview":
            return show { [writes] server async throws(TrebuchetError) in
                try await server.inspectedOverview(writes: writes)
            }
        case "/inspect/actors":
            let look = try ActorsLook(query)
            return show { server in server.inspectedActors(look) }
        case "/inspect/connections":
            let page = try InspectedPage(query)
            return show { [recorder] server async throws(TrebuchetError) in
                try await server.inspectedConnections(page, errors: await recorder.lastErrors())
            }
        case "/inspect/calls":
            let after = try query.number("after", in: 0...Int.max) ?? 0
            let limit = try query.number("limit", in: 1...CallRing.room) ?? 100
            return show { [recorder] _ in await recorder.calls(after: UInt64(after), limit: limit) }
        case "/inspect/store":
            return show { server async throws(TrebuchetError) in try await server.inspectedStore() }
        case "/inspect/nodes":
            return show { server in server.inspectedNodes() }
        default:
            guard let name = path.behind(Self.actors) else { return .last(Self.nothing.response) }
            let look = try ActorLook(try InspectorQuery.decode(Array(name.utf8)), query)
            return show { [recorder] server async throws(TrebuchetError) in
                try await server.inspectedActor(look, recorder)
            }
        }
    }

    /// What is asked for with POST, where that may be.
    private func change(
        _ path: String, _ query: InspectorQuery, _ address: SocketAddress?
    ) throws(InspectorQuery.Refused) -> PlainAnswer {
        let who = address.map { "\($0)" } ?? "somebody"
        if let name = path.behind(Self.actors).flatMap({ $0.hasSuffix("/call") ? $0.dropLast(5) : nil }) {
            let call = try InspectorCall(try InspectorQuery.decode(Array(name.utf8)), query)
            return show { server async throws(TrebuchetError) in try await server.call(call, for: who) }
        }
        if let number = path.behind("/inspect/connections/").flatMap({ $0.hasSuffix("/cut") ? $0.dropLast(4) : nil }) {
            guard let number = UInt64(number) else { throw InspectorQuery.Refused(text: "a connection is a number") }
            return show { server async throws(TrebuchetError) in try await server.cut(connection: number, for: who) }
        }
        return .last(Self.nothing.response)
    }

    private static let actors = "/inspect/actors/"
    private static var nothing: PageReply {
        failed(404, "there are /inspect/overview, actors, actors/NAME, connections, calls, store and nodes")
    }

    /// - Parameter look: nil of what is not there.
    private func show(
        _ look: @escaping @Sendable (TrebuchetServer) async throws(TrebuchetError) -> InspectorJSON?
    ) -> PlainAnswer {
        door.ask { server in
            do throws(TrebuchetError) {
                guard let shown = try await look(server) else {
                    return Self.failed(404, "none of this name stands ready here, and looking makes none")
                }
                return Self.page(200, shown)
            } catch {
                return Self.failed(503, error.message)
            }
        }
    }

    private static func page(_ status: Int, _ json: InspectorJSON) -> PageReply {
        PageReply(
            HTTPResponse(status: status, headers: ["Content-Type": "application/json; charset=utf-8"]),
            body: json.bytes)
    }

    private static func failed(_ status: Int, _ text: String) -> PageReply {
        page(status, .object([("error", .text(text))]))
    }
}

extension String {
    /// What follows a beginning; nil where there is nothing, or it is another one.
    fileprivate func behind(_ beginning: String) -> Substring? {
        hasPrefix(beginning) && utf8.count > beginning.utf8.count ? dropFirst(beginning.count) : nil
    }
}

/// The page, and what it is made of: the same for everybody.
struct InspectorFiles: Sendable {
    private let files: [String: PageReply]

    init() {
        let texts: [(String, StaticString)] = [
            ("index.html", WebFiles.inspectorPage), ("inspector.css", WebFiles.inspectorStyle),
            ("inspector.js", WebFiles.inspector),
        ]
        files = Dictionary(
            uniqueKeysWithValues: texts.map { name, text in
                let headers: HTTPHeaders = [
                    "Content-Type": ContentType.of(name.utf8), "Content-Security-Policy": Self.policy,
                ]
                let body = text.withUTF8Buffer { Array($0) }
                return (
                    name == "index.html" ? "/" : "/" + name,
                    PageReply(HTTPResponse(status: 200, headers: headers), body: body)
                )
            })
    }

    subscript(path: String) -> PageReply? { files[path] }

    /// It runs and loads what comes from here alone, and nothing that stands in the page itself.
    private static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
        + "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
}

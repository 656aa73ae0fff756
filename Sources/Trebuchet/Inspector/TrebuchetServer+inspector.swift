internal import Networking
internal import Synchronization
public import Transports
internal import TrebuchetActors
internal import WebSockets

/// The inspector: what a server has and does, for who develops it.
extension TrebuchetServer {
    /// Where the inspector is, and for whom.
    public struct Inspector: Sendable {
        /// The address that it listens on, one of this machine.
        public let address: SocketAddress
        /// What each request has to show, as `Authorization: Bearer …`. It ends with the server.
        public let token: String
        /// Both together, to be handed to `trebuchet inspect --url`. The token stands in the fragment, which no browser sends.
        public var link: String { "http://\(address)/#token=\(token)" }
    }

    /// Shows the server from inside, at an address of its own at 127.0.0.1, until the server has ended. Before or after `start`, once.
    ///
    /// It reads and changes nothing. What it shows is JSON, under `/inspect/…` (`Docs/Observability.md` has the paths), with names of actors and
    /// of principals and states of actors in it: a random token of 256 bits is needed for each request, and the names and pages of others are
    /// refused. Calls and versions are noted only while somebody looks, and for half a minute after that.
    ///
    /// - Parameter port: 0, the default, takes a free one.
    /// - Throws: `TransportError`: `addressInvalid` for a second inspector and after the end; else as `start`.
    public func openInspector(port: Int = 0) throws(TransportError) -> Inspector {
        let token = DirectSecrets.randomBytes(32).map { byte in
            String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
        }.joined()
        let address = InspectorAddress(self, token: token)
        let listener = try address.listen(port: port, on: ReactorGroup(shards.map(\.reactor)))
        let isFirst = operatorListeners.withLock { listeners in
            guard listeners.inspector == nil, !isStopping else { return false }
            listeners.inspector = listener
            listeners.endInspection = { address.recorder.end() }
            return true
        }
        guard isFirst else {
            Task { await listener.shutdown() }
            throw TransportError(.addressInvalid, "the server has an inspector already, or has ended")
        }
        return Inspector(address: listener.address, token: token)
    }
}

/// Answers who looks inside.
struct InspectorAddress: Sendable {
    private let door: OperatorDoor
    let recorder: InspectorRecorder

    init(_ server: TrebuchetServer, token: String) {
        door = OperatorDoor(server, name: "inspector", token: token, takesOwnPages: true)
        recorder = InspectorRecorder(server.parts.events, on: server.shards[0])
    }

    func listen(port: Int, on reactors: ReactorGroup) throws(TransportError) -> WebSocketServer {
        try door.listen(host: "127.0.0.1", port: port, tls: nil, on: reactors) { request, address in
            if let refusal = door.refusal(of: request, from: address) { return .last(refusal) }
            do throws(InspectorQuery.Refused) {
                return try answer(request.path, try InspectorQuery(request.query))
            } catch {
                return .last(Self.failed(400, error.text).response)
            }
        }
    }

    private func answer(_ path: String, _ query: InspectorQuery) throws(InspectorQuery.Refused) -> PlainAnswer {
        switch path {
        case "/inspect/overview":
            return show { server async throws(TrebuchetError) in try await server.inspectedOverview() }
        case "/inspect/actors":
            let look = try ActorsLook(query)
            return show { server in server.inspectedActors(look) }
        case "/inspect/connections":
            let page = try InspectedPage(query)
            return show { server async throws(TrebuchetError) in try await server.inspectedConnections(page) }
        case "/inspect/calls":
            let after = try query.number("after", in: 0...Int.max) ?? 0
            let limit = try query.number("limit", in: 1...CallRing.room) ?? 100
            return show { [recorder] _ in await recorder.calls(after: UInt64(after), limit: limit) }
        case "/inspect/store":
            return show { server async throws(TrebuchetError) in try await server.inspectedStore() }
        case "/inspect/nodes":
            return show { server in server.inspectedNodes() }
        default:
            guard path.hasPrefix(Self.actor), path.utf8.count > Self.actor.utf8.count else {
                return .last(Self.failed(404, "there are /inspect/\(Self.paths)").response)
            }
            let name = try InspectorQuery.decode(Array(path.utf8.dropFirst(Self.actor.utf8.count)))
            let limit = try query.number("versions", in: 0...InspectedActor.room) ?? 50
            return door.ask { [recorder] server in
                guard let shown = await server.inspectedActor(name, recorder, versions: limit) else {
                    return Self.failed(404, "no actor of this name stands ready here, and looking makes none")
                }
                return Self.page(200, shown)
            }
        }
    }

    private static let actor = "/inspect/actors/"
    private static let paths = "overview, actors, actors/NAME, connections, calls, store and nodes"

    private func show(
        _ look: @escaping @Sendable (TrebuchetServer) async throws(TrebuchetError) -> InspectorJSON
    ) -> PlainAnswer {
        door.ask { server in
            do throws(TrebuchetError) {
                return Self.page(200, try await look(server))
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

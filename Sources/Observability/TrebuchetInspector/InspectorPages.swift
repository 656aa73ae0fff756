internal import Bytes
internal import Networking
internal import Trebuchet
internal import TrebuchetActors
internal import TrebuchetWire

/// The server of the inspector's actors, reachable through the inspector endpoint only.
final class InspectorPages: Sendable {
    static let prefix = "pages/"

    let server: TrebuchetServer

    init(
        of requestGuard: AdminRequestGuard, _ views: InspectorViews, on reactors: ReactorGroup,
        log: @escaping @Sendable (String) -> Void
    ) {
        var limits = ServerLimits()
        limits.activatedActors.total = 256
        limits.activatedActors.perConnection = 8
        limits.streams.perConnection = 16
        limits.calls.perConnection = 32
        limits.memory.total = 128 << 20
        limits.messages.inboundBytes = 256 << 10
        // The server does not listen: the inspector endpoint passes it the connections that present the token.
        let server = TrebuchetServer(
            transport: .webSocket(port: 0), on: reactors, limits: limits, access: .open, store: nil,
            showsErrorText: true, log: ConsoleLog(write: log))
        self.server = server
        server.expose(InspectorPage.self, as: Self.prefix + "*", idle: .seconds(5), discarding: true) {
            [weak server] name in
            guard let server else { throw TrebuchetError(.unavailable, "the inspector has shut down") }
            return InspectorPage(
                InspectorWindow(name: name, requestGuard: requestGuard, views: views, pages: server),
                actorSystem: server.actorSystem)
        }
    }

    func shutDown() async { await server.shutdown(drain: .seconds(1)) }
}

/// The dependencies of an inspector page.
final class InspectorWindow: Sendable {
    let name: String
    let views: InspectorViews
    private let requestGuard: AdminRequestGuard
    private weak let pages: TrebuchetServer?

    init(name: String, requestGuard: AdminRequestGuard, views: InspectorViews, pages: TrebuchetServer) {
        self.name = name
        self.requestGuard = requestGuard
        self.views = views
        self.pages = pages
    }

    var server: TrebuchetServer? { requestGuard.server }

    /// True if a client observes the page.
    var isObserved: Bool {
        get async {
            guard let pages else { return false }
            if await pages.subscriberCount(of: name, "observeOverview") > 0 { return true }
            return await pages.subscriberCount(of: name, "observeView") > 0
        }
    }
}

/// The contents of a view, as encoded JSON.
struct InspectorView: DirectJSON, Codable, Sendable, Equatable {
    /// The requested path; empty before the first request.
    private(set) var path = ""
    private var status = 0
    private var json: [UInt8] = Array("null".utf8)

    static let nothing = InspectorView()

    private init() {}

    init(_ path: String, _ status: Int, _ json: InspectorJSON) {
        (self.path, self.status, self.json) = (path, status, json.bytes)
    }

    func write(json buffer: inout ByteBuffer) {
        buffer.append(#"{"path":"# as StaticString)
        InspectorJSON.text(path).write(to: &buffer)
        buffer.append(#","status":"# as StaticString)
        buffer.append(decimal: Int64(status))
        buffer.append(#","shown":"# as StaticString)
        buffer.append(json)
        buffer.append(UInt8(ascii: "}"))
    }

    func encode(to encoder: any Encoder) throws {
        guard try writeDirectly(to: encoder) else {
            throw TrebuchetError(.internal, "this value can only be encoded for pages")
        }
    }

    // Only pages in a browser decode it, never Swift code.
    init(json: inout JSONCursor, depth: Int) throws {
        throw TrebuchetError(.internal, "this value can only be encoded for pages")
    }
    init(from decoder: any Decoder) throws {
        throw TrebuchetError(.internal, "this value can only be encoded for pages")
    }
}

internal import Bytes
internal import Networking
internal import TrebuchetWire
internal import WebSockets

/// The WebSocket server that accepts client connections.
enum WebSocketConnections {
    /// The limit reported when no file descriptors are left; it is not part of `ServerLimits`.
    private static let openFiles = "openFiles"

    /// Starts listening. `GET /healthz` is answered 200, other paths by calls, routes and pages.
    static func listen(
        _ transport: ServerTransport, shards: [ServerShard], parts: ServerContext, access: AccessPolicy,
        pages: PageRouter, routes: RouteTree
    ) throws(TransportError) -> WebSocketServer {
        let limits = parts.limits
        var webSocket = WebSocketLimits()
        webSocket.bufferedBytesPerHost = limits.memory.perHost
        webSocket.bufferedBytesPerConnection = limits.memory.perConnection
        webSocket.messageTimeout = limits.messages.timeout
        webSocket.sharedBytesUnsent = limits.streams.supersededVersionBytes
        webSocket.sharedBytesTimeout = limits.streams.supersededVersionTimeout
        webSocket.connections = limits.connections.total
        webSocket.messageBytes = limits.messages.inboundBytes
        webSocket.frameBytes = limits.messages.inboundBytes
        webSocket.pingInterval = limits.connections.pingInterval
        webSocket.pongTimeout = limits.connections.pongTimeout
        webSocket.pages = limits.pages
        webSocket.connectionsPerHost = limits.connections.perHost
        var admit: (@Sendable (WebSocketUpgrade) async -> WebSocketUpgrade.Admission)?
        if !access.isOpen { admit = { [parts] in await access.admit($0, parts.failedHooks) } }
        let origins = try OriginRule(access.origins)
        let proxies = try TrustedProxies(access.trustedProxies.sorted())
        let cors = try access.cors.map { (policy) throws(TransportError) in
            try CORSRule(policy, origins: access.origins)
        }
        let requests = HTTPRequestRouter(shards, routes, access, cors, parts)
        let refusals = RejectionLog(parts.plainLog)
        let exhaustionLog = RejectionLog(parts.plainLog)
        return try WebSocketServer(
            host: transport.host, port: transport.port, reactors: ReactorGroup(shards.map(\.reactor)),
            subprotocols: [ProtocolVersion.subprotocol], limits: webSocket, tls: transport.tls,
            compression: transport.compression, memory: parts.memory, proxies: proxies,
            check: { request, address in
                // A load balancer may use any host name; unlike a page, it sends no origin.
                // Browsers send one with all methods but GET and HEAD.
                if isHealthCheck(request) || !["GET", "HEAD"].contains(request.method), request.headers["Origin"] == nil
                {
                    return nil
                }
                if !request.wantsWebSocket, cors?.permits(request) == true { return nil }
                return origins.refusal(of: request, at: address)
            },
            admit: admit,
            plain: { request in
                if isHealthCheck(request.head) { return .last(HTTPResponse(status: 200, text: "ok")) }
                return pages.answer(request) ?? requests.notFound
            },
            handled: { requests.answer($0) },
            accept: { accept($0, on: shards, limits) },
            refused: { [events = parts.events] response, address in
                events.countRejection(status: response.status)
                if events.isEnabled(for: .rejections) {
                    let reason = LogLine.of(RejectionLog.reason(response))
                    events.emit(.connectionRejected(address: address, status: response.status, reason: reason))
                }
                if !RejectionLog.isCommon(response.status) { refusals.logRejection(response, from: address) }
            }, reservedDescriptors: Listener.descriptorsForOthers + shards.count,
            onDescriptorExhaustion: { [events = parts.events] in
                events.countRejection(limit: Self.openFiles)
                exhaustionLog.logLine("new connections wait: the process has no free file descriptors (ulimit -n)")
                if events.isEnabled(for: .limits) { events.emit(.limitReached(setting: Self.openFiles, nil)) }
            })
    }

    /// Returns whether a request is a health check.
    private static func isHealthCheck(_ request: HTTPRequestHead) -> Bool {
        request.path == "/healthz" && !request.wantsWebSocket
    }

    /// Creates the connection of an admitted client, with the caller that `admit` returned.
    static func accept(
        _ upgrade: WebSocketUpgrade, on shards: [ServerShard], _ limits: ServerLimits
    ) -> WebSocketUpgrade.Decision {
        guard let shard = shards.first(where: { $0.reactor === upgrade.reactor }) else {
            return .reject(HTTPResponse(status: 503, text: "no reactor"))
        }
        let name = shard.newConnectionName()
        let caller = upgrade.admission as? Caller
        var reservation: QuotaReservation?
        if let principal = caller?.principal {
            do throws(TrebuchetError) {
                let quotas = shard.context.quotas
                let scopes = QuotaScopes(connection: name.number, principal: principal.id, host: nil)
                reservation = try quotas.reserve(.connections, in: quotas.account(for: scopes))
            } catch {
                return .reject(HTTPResponse(status: 429, text: error.message))
            }
        }
        let link = WebSocketLink(
            shard, name, isLegacy: upgrade.subprotocol == nil, caller: caller, reservation: reservation,
            largestMessage: upgrade.request.headers[HandshakeField.messageSize].flatMap { Int($0) } ?? .max)
        guard upgrade.subprotocol != nil else {
            return .accept(link, messageBytes: LegacyLink.largestMessage(within: limits))
        }
        return .accept(link, headers: [HandshakeField.session: shard.idempotencyCache.names.text(name)])
    }
}

/// The link of a connection over a WebSocket.
private final class WebSocketLink: WebSocketHandler, MessageLink {
    /// The payload of the ping that requests an acknowledgement.
    private static let question = Array("heard".utf8)

    /// The parameters of the connection until it is created.
    private final class Pending {
        let shard: ServerShard
        let name: CallSessionID
        let isLegacy: Bool
        let caller: Caller?
        let reservation: QuotaReservation?
        let largestMessage: Int

        init(
            _ shard: ServerShard, _ name: CallSessionID, _ isLegacy: Bool, _ caller: Caller?,
            _ reservation: QuotaReservation?,
            _ largestMessage: Int
        ) {
            self.shard = shard
            self.name = name
            self.isLegacy = isLegacy
            self.caller = caller
            self.reservation = reservation
            self.largestMessage = largestMessage
        }
    }

    private var pending: Pending?
    /// Unmanaged is safe: the socket retains this handler until it has reported its close, so it outlives each use here.
    private var socket: Unmanaged<WebSocket>!
    private var connection: ServerConnection!
    /// The translator for a client of version 1 or 2.
    private var legacy: LegacyLink?
    /// The opcode of the client's last message, also used for responses.
    private var opcode = WebSocketOpcode.text

    init(
        _ shard: ServerShard, _ name: CallSessionID, isLegacy: Bool, caller: Caller?, reservation: QuotaReservation?,
        largestMessage: Int
    ) {
        pending = Pending(shard, name, isLegacy, caller, reservation, largestMessage)
    }

    // MARK: WebSocketHandler

    func webSocketDidOpen(_ socket: WebSocket) {
        self.socket = .passUnretained(socket)
        guard let made = pending else { return }
        pending = nil
        guard made.isLegacy else {
            connection = ServerConnection(
                self, name: made.name, shard: made.shard, caller: made.caller, reservation: made.reservation,
                largestMessage: made.largestMessage)
            return
        }
        socket.fragmentBytes = LegacyLink.fragmentBytes
        let legacy = LegacyLink(over: self)
        self.legacy = legacy
        connection = ServerConnection(
            legacy, name: made.name, shard: made.shard, caller: made.caller, reservation: made.reservation,
            largestMessage: LegacyLink.largestMessage(toClient: made.largestMessage, made.shard.limits))
    }

    func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode) {
        self.opcode = opcode
        if let legacy { return legacy.receive(UnsafeRawBufferPointer(message), for: connection) }
        // Safe: the connection is released when the socket has closed, which is never reported during another handler call.
        Unmanaged.passUnretained(connection)._withUnsafeGuaranteedRef { $0.receive(UnsafeRawBufferPointer(message)) }
    }

    func webSocket(_ socket: WebSocket, didReceivePong payload: UnsafeMutableRawBufferPointer) {
        if payload.elementsEqual(Self.question) { connection.didReceiveDrainPong() }
    }

    func webSocketDidBecomeWritable(_ socket: WebSocket) { connection.linkDidBecomeWritable() }

    func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {
        connection.linkDidClose(Self.closing(socket.recordClose(code, reason)))
        connection = nil
        legacy = nil
    }

    private static func closing(_ end: WebSocketCloseInfo) -> ServerEvent.Closing {
        let cause: ServerEvent.Closing.Cause =
            switch end.cause {
            case .peer: .client
            case .lost: .connectionLost
            case .silent: .pingTimeout
            case .violation: .protocolViolation
            case .limit: .limit
            case .here: .server
            }
        return ServerEvent.Closing(cause, code: end.code.rawValue, reason: end.reason)
    }

    // MARK: MessageLink

    var isWritable: Bool { socket._withUnsafeGuaranteedRef { $0.isWritable } }

    var remoteAddress: SocketAddress? { socket._withUnsafeGuaranteedRef { $0.remoteAddress } }

    var host: AddressKey? { socket._withUnsafeGuaranteedRef { $0.addressKey } }

    func send(_ body: (inout ByteBuffer) -> Void) {
        socket._withUnsafeGuaranteedRef { $0.send(opcode, body) }
    }

    func send(shared: SharedBytes, headCount: Int, head: (inout ByteBuffer) -> Void) {
        socket._withUnsafeGuaranteedRef {
            $0.sendShared(opcode, headCount: headCount, head: head, shared: shared)
        }
    }

    func inOneWrite(_ body: () -> Void) {
        socket._withUnsafeGuaranteedRef { $0.inOneWrite(body) }
    }

    func inOneWrite(_ body: () -> Void, observing observer: (UnsafeRawBufferPointer) -> Void) {
        socket._withUnsafeGuaranteedRef { $0.inOneWrite(body, observing: observer) }
    }

    var framing: UInt8 {
        socket._withUnsafeGuaranteedRef { $0.framesAlike } && legacy == nil ? opcode.rawValue : 0
    }

    func sendSharedFrames(_ frames: UnsafeRawBufferPointer) {
        socket._withUnsafeGuaranteedRef { $0.sendSharedFrames(frames) }
    }

    func sendDrainPing() { socket._withUnsafeGuaranteedRef { $0.ping(Self.question) } }

    func close(_ code: WebSocketCloseCode, reason: String) {
        socket._withUnsafeGuaranteedRef { $0.close(code: code, reason: reason) }
    }

    var pendingBytes: Int { socket._withUnsafeGuaranteedRef { $0.pendingBytes } }

    var memory: MemoryAccount? { socket._withUnsafeGuaranteedRef { $0.memoryAccount } }

    func pauseReading() { socket._withUnsafeGuaranteedRef { $0.pauseReading() } }
    func resumeReading() { socket._withUnsafeGuaranteedRef { $0.resumeReading() } }

    func abort() { socket._withUnsafeGuaranteedRef { $0.abort() } }
}

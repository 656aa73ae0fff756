internal import Bytes
internal import TrebuchetActors
internal import TrebuchetWire
internal import WebSockets
internal import Transports

/// What a node tells another of a client whose connection it carries on.
struct RelayedClient: Codable {
    /// What the connection is called, at its own node.
    var session: String
    /// What its streams' names begin with, so that they are no others of the client's.
    var streams: String
    /// Whether its node asks who calls.
    var isCaller: Bool
    /// Whether the node itself calls, for its actors; nil from nodes that have no such.
    var isServer: Bool?
    var principal: RelayedPrincipal?
    var host: String?
    var port: Int?
    var largestMessage: Int
    /// Whether dates are written for clients of versions 1 and 2.
    var wholeSeconds: Bool

    struct RelayedPrincipal: Codable {
        var id: String
        var roles: [String]
        var claims: [String: String]
    }

    /// Nil for what no node sends.
    init?(_ payload: [UInt8]) {
        guard let client = try? payload.withUnsafeBytes({ try ValueCoder().decode(Self.self, from: $0) }) else {
            return nil
        }
        self = client
    }

    init(
        session: String, streams: String, caller: CallerConnection?, largestMessage: Int, wholeSeconds: Bool
    ) {
        self.session = session
        self.streams = streams
        isCaller = caller != nil
        isServer = caller?.isServer
        principal = caller?.principal.map {
            RelayedPrincipal(id: $0.id, roles: $0.roles.sorted(), claims: $0.claims)
        }
        host = caller?.remoteAddress?.host
        port = caller?.remoteAddress?.port
        self.largestMessage = largestMessage
        self.wholeSeconds = wholeSeconds
    }

    var payload: [UInt8] {
        var buffer = ByteBuffer()
        do {
            try ValueCoder().encode(self, into: &buffer)
        } catch {
            // Texts and numbers always have a form.
            preconditionFailure("a client cannot be told of: \(error)")
        }
        return Array(buffer.bytes)
    }

    /// What is wrong when it is more than one message between nodes has room for.
    var excess: TrebuchetError? {
        guard payload.count > NodeExchange.partBytes else { return nil }
        return TrebuchetError(
            .internal,
            "who is signed in has roles and claims of more than \(NodeExchange.partBytes) bytes, which nodes do not tell each "
                + "other: actors that live on other nodes cannot be reached")
    }

    /// Who calls, at a node that asks.
    var caller: Caller? {
        if isServer == true { return Caller(connection: CallerConnection(ofServer: (), isShared: true)) }
        guard isCaller else { return nil }
        return Caller(connection: CallerConnection(principal: knownPrincipal, remoteAddress: address))
    }

    var knownPrincipal: Principal? {
        principal.map { Principal(id: $0.id, roles: Set($0.roles), claims: $0.claims) }
    }

    var address: SocketAddress? {
        guard let host else { return nil }
        return SocketAddress(host: host, port: port ?? 0, isIPv6: host.utf8.contains(UInt8(ascii: ":")))
    }
}

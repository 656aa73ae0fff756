internal import Bytes
internal import TrebuchetActors
internal import TrebuchetWire
internal import WebSockets
internal import Transports

/// The description of a client whose connection a node forwards to another node.
struct ForwardedClient: Codable {
    /// The session of the connection at its node.
    var session: String
    /// The prefix of its stream names, which makes them unique among the client's streams.
    var streams: String
    /// True if the client's node identifies callers.
    var isCaller: Bool
    /// True if the node itself is the caller, for its actors; nil from nodes without this member.
    var isServer: Bool?
    var principal: ForwardedPrincipal?
    /// The revocation of the client's authorization; nil without one, and from nodes without this member.
    var revocation: ForwardedRevocation?
    /// The retained header fields of the client's request; nil without any, and from nodes without this member.
    var headers: [String: String]?
    var host: String?
    var port: Int?
    var largestMessage: Int

    /// The authenticated principal of the client.
    struct ForwardedPrincipal: Codable {
        var id: String
        var roles: [String]
        var claims: [String: String]
    }

    /// The maximum size of the reason of a revocation. The client's node sends the whole reason to the client.
    private static let maximumReasonBytes = 1_024

    /// A revocation of the client's authorization.
    struct ForwardedRevocation: Codable {
        var reason: String
        /// The name of the actor that may still be called.
        var exempt: String?
    }

    /// Decodes a payload; nil if it is invalid.
    init?(_ payload: [UInt8]) {
        guard let client = try? payload.withUnsafeBytes({ try ValueCoder().decode(Self.self, from: $0) }) else {
            return nil
        }
        self = client
    }

    init(
        session: String, streams: String, caller: CallerConnection?, largestMessage: Int
    ) {
        self.session = session
        self.streams = streams
        isCaller = caller != nil
        isServer = caller?.isServer
        principal = caller?.principal.map {
            ForwardedPrincipal(id: $0.id, roles: $0.roles.sorted(), claims: $0.claims)
        }
        revocation = caller?.currentRevocation.map {
            ForwardedRevocation(reason: $0.error.message.prefix(bytes: Self.maximumReasonBytes), exempt: $0.exempt)
        }
        headers = caller.flatMap { $0.headers.isEmpty ? nil : $0.headers }
        host = caller?.remoteAddress?.host
        port = caller?.remoteAddress?.port
        self.largestMessage = largestMessage
    }

    var payload: [UInt8] {
        var buffer = ByteBuffer()
        do {
            try ValueCoder().encode(self, into: &buffer)
        } catch {
            // Strings and integers can always be encoded.
            preconditionFailure("the description of a client cannot be encoded: \(error)")
        }
        return Array(buffer.bytes)
    }

    /// The error if the description does not fit into one node message; else nil.
    var excess: TrebuchetError? {
        guard payload.count > NodeTransport.partBytes else { return nil }
        return TrebuchetError(
            .internal,
            "the principal's roles and claims and the retained headers exceed \(NodeTransport.partBytes) bytes and are not sent to other "
                + "nodes: actors on other nodes cannot be reached")
    }

    /// The caller, at a node that identifies callers.
    var caller: Caller? {
        if isServer == true { return Caller(connection: CallerConnection(ofServer: (), isShared: true)) }
        guard isCaller else { return nil }
        return Caller(
            connection: CallerConnection(principal: knownPrincipal, remoteAddress: address, headers: headers ?? [:]))
    }

    var knownPrincipal: Principal? {
        principal.map { Principal(id: $0.id, roles: Set($0.roles), claims: $0.claims) }
    }

    /// Gives the connection at this node the principal and the revocation of the client.
    func update(_ connection: CallerConnection) {
        // Setting the principal ends a revocation.
        if connection.principal != knownPrincipal || revocation == nil { connection.principal = knownPrincipal }
        if let revocation, !connection.isRevoked {
            connection.revokeAccess(revocation.reason, except: revocation.exempt)
        }
    }

    var address: SocketAddress? {
        guard let host else { return nil }
        return SocketAddress(host: host, port: port ?? 0, isIPv6: host.utf8.contains(UInt8(ascii: ":")))
    }
}

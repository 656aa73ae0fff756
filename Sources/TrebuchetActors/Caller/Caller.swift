internal import Platform
public import Transports

/// Who a client has proved to be. Two are equal when the bytes of their ids are, and their roles and claims.
public struct Principal: Sendable, Hashable {
    /// Unlike that of anybody else; limits count by it.
    public var id: String
    /// What rules ask for; names that the app gives.
    public var roles: Set<String>
    /// What else is known, as the claims of a token.
    public var claims: [String: String]

    /// - Parameters:
    ///   - id: unlike that of anybody else.
    ///   - roles: names that the app's rules ask for. Default: none.
    ///   - claims: what else is known. Default: nothing.
    public init(id: String, roles: Set<String> = [], claims: [String: String] = [:]) {
        self.id = id
        self.roles = roles
        self.claims = claims
    }

    /// Its id as a key.
    package var name: PrincipalName { PrincipalName(id) }

    /// Whether they are the same in all, ids byte for byte.
    public static func == (a: Self, b: Self) -> Bool { a.name == b.name && a.roles == b.roles && a.claims == b.claims }

    /// Its id, byte for byte.
    public func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

/// The client, or in a client the server, on whose behalf an actor works.
public struct Caller: Sendable {
    /// What the call came over.
    public let connection: CallerConnection

    package init(connection: CallerConnection) { self.connection = connection }

    /// Nil when the server lets in clients without credentials.
    public var principal: Principal? { connection.principal }
    /// Nil for a client in this process; of one behind a proxy of `AccessPolicy.trustedProxies` its own, with port 0.
    public var remoteAddress: SocketAddress? { connection.remoteAddress }

    /// Whether the server calls: an actor that lives in a client, or from an actor of its own or of another node, one that it has
    /// found by name (`TrebuchetActorSystem.resolve(_:id:)`).
    public var isServer: Bool { connection.isServer }

    /// The caller of the distributed method that runs now: at a server with an `AccessPolicy` its client, in an actor that lives in
    /// a client its server; nil elsewhere. It comes from
    /// the connection and never from arguments, and goes on into tasks and calls that the method makes.
    @TaskLocal public static var current: Caller?
}

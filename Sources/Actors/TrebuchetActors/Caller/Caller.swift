internal import Platform
internal import Synchronization
public import Transports

/// The authenticated identity of a caller. Two principals are equal if the bytes of their ids and their roles and claims are.
public struct Principal: Sendable, Hashable {
    /// The unique id of the principal; limits count by it.
    public var id: String
    /// The roles, by names that the app defines; rules refer to them.
    public var roles: Set<String>
    /// Further attributes, such as the claims of a token.
    public var claims: [String: String]

    /// Creates a principal.
    ///
    /// - Parameters:
    ///   - id: the unique id of the principal.
    ///   - roles: names that the app's rules refer to. Default: none.
    ///   - claims: further attributes. Default: none.
    public init(id: String, roles: Set<String> = [], claims: [String: String] = [:]) {
        self.id = id
        self.roles = roles
        self.claims = claims
    }

    /// The id as a key.
    package var name: PrincipalName { PrincipalName(id) }

    /// Compares ids by bytes, and roles and claims.
    public static func == (a: Self, b: Self) -> Bool { a.name == b.name && a.roles == b.roles && a.claims == b.claims }

    /// Hashes the bytes of the id.
    public func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

/// The party on whose behalf an actor works: a client, or the server for an actor in a client.
public struct Caller: Sendable {
    /// One object, because each call binds it.
    private final class Identity: Sendable {
        let connection: CallerConnection
        let principal: Principal?
        /// The value of `CallerConnection.principalChanges` before the principal was read.
        let changes: UInt64

        init(_ connection: CallerConnection) {
            self.connection = connection
            changes = connection.principalChanges.load(ordering: .acquiring)
            principal = connection.principal
        }
    }

    private let identity: Identity

    /// Creates the caller of calls that arrive now.
    package init(connection: CallerConnection) { identity = Identity(connection) }

    /// The connection that the call came over.
    public var connection: CallerConnection { identity.connection }

    /// The principal of the connection when the call arrived; nil if the server admits clients without credentials. A later sign-in or
    /// sign-out on the connection does not change it: `connection.principal` is the present one.
    public var principal: Principal? { identity.principal }

    /// A Boolean value that indicates whether the principal of the connection has not been set since.
    package var isCurrent: Bool {
        identity.changes == identity.connection.principalChanges.load(ordering: .acquiring)
    }

    /// A Boolean value that indicates whether the principal has left the connection, which has another one or none now.
    package var hasLeft: Bool {
        guard !isCurrent, let principal else { return false }
        return principal.name != connection.principal?.name
    }

    /// Returns the error of a call that was admitted before and has not started; nil if it may start. It never starts as a principal
    /// that has left the connection, nor after its access was revoked.
    package func refusalAfterAdmission(of actor: @autoclosure () -> String) -> TrebuchetError? {
        if connection.isRevoked, let revocation = connection.revocation(of: actor()) { return revocation }
        return hasLeft ? Self.replacedPrincipal : nil
    }

    /// The error of a call that has waited until its principal had left the connection.
    package static var replacedPrincipal: TrebuchetError {
        TrebuchetError(
            .unauthenticated,
            "the principal of the connection has changed before the call started; sign in and call again")
    }

    /// Returns whether both are the same caller, with the same principal object.
    package static func areIdentical(_ a: Caller?, _ b: Caller?) -> Bool { a?.identity === b?.identity }
    /// The client's address; nil for a client in this process. Behind a proxy of `AccessPolicy.trustedProxies` it is the
    /// client's address with port 0.
    public var remoteAddress: SocketAddress? { connection.remoteAddress }

    /// A Boolean value that indicates whether a server makes the call: to an actor in a client, or from a server actor to one
    /// that it has resolved by name, also from another node (`TrebuchetActorSystem.resolve(_:id:)`).
    public var isServer: Bool { connection.isServer }

    /// The caller of the running distributed method: the client at a server with an `AccessPolicy`, the server in an actor that
    /// lives in a client. Nil elsewhere. It comes from the connection, never from arguments, and is inherited by tasks and
    /// calls of the method.
    @TaskLocal public static var current: Caller?
}

internal import Platform
internal import WebSockets

/// The scopes of a connection that have quotas: the connection, its principal if it has one, its host and its network. Loopback
/// is no host, since a proxy may represent many clients.
struct QuotaScopes: Sendable, Equatable {
    /// The number of the connection; nil for the server itself.
    let connection: UInt64?
    let principal: String?
    let host: AddressKey?

    /// The server's actors, whose use counts for the server only.
    static let server = QuotaScopes(connection: nil, principal: nil, host: nil)

    /// Compares principals by bytes.
    static func == (a: Self, b: Self) -> Bool {
        a.connection == b.connection && a.host == b.host
            && a.principal.map { PrincipalName($0) } == b.principal.map { PrincipalName($0) }
    }

    /// All scopes except the server, the narrowest first.
    var all: [QuotaScope] {
        var all: [QuotaScope] = []
        if let connection { all.append(.connection(connection)) }
        if let principal { all.append(.principal(PrincipalName(principal))) }
        if let host {
            all.append(.host(host.number))
            if host.network != host { all.append(.network(host.network.number)) }
        }
        return all
    }
}

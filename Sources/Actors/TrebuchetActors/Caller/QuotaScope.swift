package import Platform

/// The scope by which a quota is counted.
package enum QuotaScope: Hashable, Sendable {
    case server
    case connection(UInt64)
    /// A client that has exported actors, over all its connections.
    case client(UInt64)
    case principal(PrincipalName)
    /// A host, by the number of its address, which is the same in every process.
    case host(UInt64)
    /// An IPv6 network of hosts, by its number.
    case network(UInt64)

    /// The subject of an error message, such as "the server has".
    package var name: String {
        switch self {
        case .server: "the server has"
        case .connection: "this connection has"
        case .client: "this client has"
        case .principal(let id): "'\(id.text)' has"
        case .host: "this host has"
        case .network: "this network has"
        }
    }
}

/// The id of a principal as a key, compared by bytes. Swift's string equality could treat two accounts as one.
package typealias PrincipalName = ByteText

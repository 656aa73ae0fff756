package import Platform

/// Who uses something.
package enum Party: Hashable, Sendable {
    case server
    case connection(UInt64)
    /// One that has handed over references to actors of its own, over all of its connections.
    case client(UInt64)
    case principal(PrincipalName)
    /// By the number of its address, which is the same in every process.
    case host(UInt64)

    /// For errors.
    package var name: String {
        switch self {
        case .server: "the server has"
        case .connection: "this connection has"
        case .client: "this client has"
        case .principal(let id): "'\(id.text)' has"
        case .host: "this host has"
        }
    }
}

/// The id of a principal as a key: Swift's own equality would give one account what is another's.
package typealias PrincipalName = ByteText

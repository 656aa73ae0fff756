internal import WebSockets

/// The caller whose call or subscription activates an actor; current while the factory of the actor runs.
package struct ActivationOrigin: Hashable, Sendable {
    @TaskLocal package static var current: ActivationOrigin?

    /// Nil for loopback connections and clients in this process.
    package let host: CallerHost?
    /// The number of the connection.
    package let connection: UInt64

    /// The scope by which services count activations.
    var scope: QuotaScope { host.map { .host($0.number) } ?? .connection(connection) }

    /// Returns nil for the server itself.
    init?(_ scopes: QuotaScopes) {
        guard let connection = scopes.connection else { return nil }
        self.connection = connection
        host = scopes.host.flatMap { $0.isLoopback ? nil : CallerHost($0) }
    }
}

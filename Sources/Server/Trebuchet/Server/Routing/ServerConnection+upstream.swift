package import TrebuchetActors

/// Connections of clients that are connected to another server.
extension ServerConnection {
    /// Opens the connection of a client whose server forwards it. It replaces the earlier connection of the same name.
    ///
    /// - Parameters:
    ///   - link: The link to that server.
    ///   - largestMessage: The maximum size in bytes of a message to the client.
    package static func open(
        over link: any MessageLink & UpstreamServer, at shard: ServerShard, caller: Caller?, largestMessage: Int
    ) -> ServerConnection {
        let name = link.alias.name
        // No further messages arrive over the previous link.
        shard.connections[name.number]?.linkDidClose()
        let connection = ServerConnection(
            link, name: name, shard: shard, caller: caller, largestMessage: largestMessage,
            upstream: link)
        connection.recordsResponses = shard.idempotencyCache.reopen(name)
        // Other servers take over the actors of a draining server: no new calls and streams start here.
        if shard.isDraining { connection.dismiss() }
        return connection
    }
}

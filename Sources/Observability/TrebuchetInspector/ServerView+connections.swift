internal import Trebuchet
internal import TrebuchetActors

extension ServerView {
    /// Returns a page of the connections, the oldest first.
    ///
    /// - Parameter errors: the last error of each connection, by its number.
    func inspectedConnections(
        _ page: ListPage, errors: [UInt64: InspectorJSON]
    ) async throws(TrebuchetError) -> InspectorJSON {
        let (shown, found) = try await connections(at: page.positions)
        return .object(
            page.head(found: found) + [
                ("connections", .list(shown.map { Self.json($0, error: errors[$0.peer.connection]) }))
            ])
    }

    private static func json(_ connection: Connection, error: InspectorJSON?) -> InspectorJSON {
        .object([
            ("connection", .count(connection.peer.connection)),
            ("address", .text(connection.peer.address.map { "\($0)" })),
            ("principal", .text(connection.peer.principal)), ("protocol", .count(connection.protocolVersion)),
            ("reactor", .text(connection.reactor)), ("seconds", .seconds(connection.age)),
            ("streams", .count(connection.streams)), ("calls", .count(connection.calls)),
            ("bufferedBytes", .count(connection.bufferedBytes)), ("writable", .flag(connection.isWritable)),
            ("draining", .flag(connection.isDraining)), ("ofNode", .flag(connection.isForwarded)),
            ("lastError", error ?? .null),
        ])
    }
}

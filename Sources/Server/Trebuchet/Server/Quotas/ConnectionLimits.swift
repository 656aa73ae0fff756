/// The limits of one connection.
struct ConnectionLimits: Sendable {
    let calls: Int
    let callBytes: Int
    let streams: Int
    let filters: Int
    let answers: Int
    let answerBytes: Int
}

extension ServerLimits {
    /// The maximum number of in-flight calls from actors of one reactor to other actors of the server.
    private static let callsOfServer = 100_000

    /// The limits for a client's connection.
    var ofClient: ConnectionLimits {
        ConnectionLimits(
            calls: calls.perConnection, callBytes: calls.bytesPerConnection, streams: streams.perConnection,
            filters: filters.perConnection, answers: idempotency.perConnection,
            answerBytes: idempotency.bytesPerConnection)
    }

    /// The limits for the server's internal connection, which all its actors share: server-wide limits apply.
    var ofServer: ConnectionLimits {
        ConnectionLimits(
            calls: max(calls.perConnection, Self.callsOfServer),
            callBytes: max(calls.bytesPerConnection, memory.total / 4),
            streams: max(streams.perConnection, streams.total), filters: max(filters.perConnection, filters.total),
            answers: max(idempotency.perConnection, idempotency.total),
            answerBytes: max(idempotency.bytesPerConnection, idempotency.totalBytes))
    }
}

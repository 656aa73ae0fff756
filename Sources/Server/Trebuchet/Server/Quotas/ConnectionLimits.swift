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
            calls: callsPerConnection, callBytes: callBytesPerConnection, streams: streamsPerConnection,
            filters: filtersPerConnection, answers: recordedResponsesPerConnection,
            answerBytes: recordedResponseBytesPerConnection)
    }

    /// The limits for the server's internal connection, which all its actors share: server-wide limits apply.
    var ofServer: ConnectionLimits {
        ConnectionLimits(
            calls: max(callsPerConnection, Self.callsOfServer),
            callBytes: max(callBytesPerConnection, bufferedBytes / 4),
            streams: max(streamsPerConnection, streams), filters: max(filtersPerConnection, filters),
            answers: max(recordedResponsesPerConnection, recordedResponses),
            answerBytes: max(recordedResponseBytesPerConnection, recordedResponseBytes))
    }
}

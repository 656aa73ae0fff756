/// What one connection may have at once.
struct ConnectionLimits: Sendable {
    let calls: Int
    let callBytes: Int
    let streams: Int
    let filters: Int
    let answers: Int
    let answerBytes: Int
}

extension ServerLimits {
    /// Calls that the actors of one reactor may have under way at once to actors that are reached by name.
    private static let callsOfServer = 100_000

    /// Of a client.
    var ofClient: ConnectionLimits {
        ConnectionLimits(
            calls: callsPerConnection, callBytes: callBytesPerConnection, streams: streamsPerConnection,
            filters: filtersPerConnection, answers: answersPerConnection, answerBytes: answerBytesPerConnection)
    }

    /// Of a server, whose actors share one: what counts for all counts for it.
    var ofServer: ConnectionLimits {
        ConnectionLimits(
            calls: max(callsPerConnection, Self.callsOfServer), callBytes: max(callBytesPerConnection, heldBytes / 4),
            streams: max(streamsPerConnection, streams), filters: max(filtersPerConnection, filters),
            answers: max(answersPerConnection, answers), answerBytes: max(answerBytesPerConnection, answerBytes))
    }
}

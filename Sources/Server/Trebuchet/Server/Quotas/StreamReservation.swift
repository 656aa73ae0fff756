internal import TrebuchetActors

/// The reservation of a stream until it has started; released if it does not start. It identifies a request, whose names the client
/// chooses.
///
/// `@unchecked Sendable`: mutable properties are accessed on the connection's reactor, and in `deinit`, when no other reference
/// exists.
package final class StreamReservation: @unchecked Sendable {
    let isFiltered: Bool
    private let connection: ServerConnection
    private var isTransferred = false
    /// Indicates whether the stream must not start any more.
    private(set) var isWithdrawn = false
    /// The error for the client in that case; nil when the client knows.
    private(set) var refusal: TrebuchetError?

    init(_ connection: ServerConnection, isFiltered: Bool) {
        self.connection = connection
        self.isFiltered = isFiltered
    }

    /// Marks that the stream must not start: its client does not want it, or may not observe it.
    func withdraw(_ error: TrebuchetError?) {
        guard !isWithdrawn else { return }
        isWithdrawn = true
        refusal = error
    }

    /// Passes the reservation to the stream, which has started.
    func transfer() { isTransferred = true }

    /// Releases the reservation: the stream does not start. Call on the connection's reactor.
    func release() {
        guard !isTransferred else { return }
        isTransferred = true
        connection.releaseStream(isFiltered: isFiltered)
    }

    deinit {
        guard !isTransferred else { return }
        let (connection, isFiltered) = (connection, isFiltered)
        connection.shard.reactor.run { connection.releaseStream(isFiltered: isFiltered) }
    }
}

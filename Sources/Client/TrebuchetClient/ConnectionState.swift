public import Transports

extension TrebuchetClient {
    /// The connection state of a client.
    public enum ConnectionState: Equatable, Sendable {
        /// There is no connection and no attempt: `connect()` has not been called, or the client has given up after this error.
        case disconnected(TransportError?)
        /// There is no connection; this attempt is in progress or scheduled. Attempts are counted from 1, starting again with
        /// each `connect()` and after each connection that lasted. The error is the reason of the previous failure.
        case connecting(attempt: Int, after: TransportError?)
        /// Calls and streams use the connection.
        case connected
        /// The server drains. The connection remains until it ends or another one replaces it.
        case draining
        /// `close()` was called; the client will not connect again.
        case closed
    }
}

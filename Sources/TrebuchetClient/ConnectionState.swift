public import Transports

extension TrebuchetClient {
    /// How a client stands with its server.
    public enum ConnectionState: Equatable, Sendable {
        /// There is no connection and none is being made: `connect()` has not been called, or the client has given up
        /// because of this error.
        case disconnected(TransportError?)
        /// There is no connection, and this attempt is under way or waited for. Attempts are counted from 1, anew for
        /// each `connect()` and after each connection that lasted; the error is what went wrong before it.
        case connecting(attempt: Int, after: TransportError?)
        /// Calls and streams go over the connection.
        case connected
        /// The server has asked the client to go. The connection is still there until it ends or another one is made.
        case draining
        /// `close()` was called; the client makes no connection any more.
        case closed
    }
}

/// Which end of the connection this is: only a client's frames are masked (RFC 6455 §5.1).
package enum WebSocketRole: Sendable {
    case server, client
}

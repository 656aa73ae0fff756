/// What a user writes to take part in a connection; all calls come on the socket's reactor, none from inside a call
/// into the socket.
public protocol WebSocketHandler: AnyObject {
    /// The upgrade is done; the first call.
    func webSocketDidOpen(_ socket: WebSocket)
    /// A whole message: `text`, which is valid UTF-8, or `binary`. Its bytes may be changed in place and are gone after
    /// the call.
    func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode)
    /// The peer answers a ping, or sends a pong of its own accord; at most 125 bytes, gone after the call.
    func webSocket(_ socket: WebSocket, didReceivePong payload: UnsafeMutableRawBufferPointer)
    /// What waits to be sent fell below the low watermark after having been above the high one.
    func webSocketDidBecomeWritable(_ socket: WebSocket)
    /// The connection has ended; the last call, and exactly one. Code 1006 when it was lost without a close frame.
    func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String)
}

extension WebSocketHandler {
    /// Does nothing.
    public func webSocketDidOpen(_ socket: WebSocket) {}
    /// Does nothing.
    public func webSocket(_ socket: WebSocket, didReceivePong payload: UnsafeMutableRawBufferPointer) {}
    /// Does nothing.
    public func webSocketDidBecomeWritable(_ socket: WebSocket) {}
    /// Does nothing.
    public func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {}
}

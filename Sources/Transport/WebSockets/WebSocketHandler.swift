/// The user's handler of a connection. All calls are made on the socket's reactor, never from within a call into the socket.
public protocol WebSocketHandler: AnyObject {
    /// Called first, when the upgrade is complete.
    func webSocketDidOpen(_ socket: WebSocket)
    /// Called for a complete message: `text`, which is valid UTF-8, or `binary`. Its bytes can be changed in place and are valid
    /// only during the call.
    func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode)
    /// Called for a pong, solicited or not; at most 125 bytes, valid only during the call.
    func webSocket(_ socket: WebSocket, didReceivePong payload: UnsafeMutableRawBufferPointer)
    /// Called when the unsent output falls below the low watermark after it was above the high watermark.
    func webSocketDidBecomeWritable(_ socket: WebSocket)
    /// Called last and exactly once, when the connection has ended. The code is 1006 if it was lost without a close frame.
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

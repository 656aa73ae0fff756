package import Bytes
internal import Networking
package import Transports
package import WebSockets

/// The message transport of a connection to its client: a WebSocket or an object in this process. Used on the connection's
/// reactor.
package protocol MessageLink: AnyObject {
    /// True if fewer bytes than the high watermark wait to be sent.
    var isWritable: Bool { get }
    /// Sends what `body` appends as one message.
    func send(_ body: (inout ByteBuffer) -> Void)
    /// Sends one message that consists of the bytes that `head` appends and of bytes shared with other connections.
    func send(shared: SharedBytes, headCount: Int, head: (inout ByteBuffer) -> Void)
    /// Sends all messages that `body` writes in one system call.
    func inOneWrite(_ body: () -> Void)
    /// Sends all messages that `body` writes in one system call. May pass the encoded frames to `observer`, if all links of the
    /// same `framing` would send the same bytes.
    func inOneWrite(_ body: () -> Void, observing observer: (UnsafeRawBufferPointer) -> Void)
    /// The framing of messages. Links with the same value encode messages as the same bytes; 0 for links that do not expose
    /// frames.
    var framing: UInt8 { get }
    /// Sends frames that another link of the same framing passed to `observer`.
    func sendSharedFrames(_ frames: UnsafeRawBufferPointer)
    /// The memory account for the client; nil for a client in this process.
    var memory: MemoryAccount? { get }
    /// The number of bytes that wait to be sent, including bytes shared with other connections.
    var pendingBytes: Int { get }
    /// The host at the other end; nil for loopback.
    var host: AddressKey? { get }
    /// The address at the other end; nil if it is unknown.
    var remoteAddress: SocketAddress? { get }
    /// A Boolean value that indicates whether events and metrics count the link as a connection.
    var countsAsConnection: Bool { get }
    /// Requests `linkDidHear` on the connection, once the client has read all messages sent so far and all messages that it had
    /// sent by then have arrived.
    func sendDrainPing()
    func close(_ code: WebSocketCloseCode, reason: String)
    /// Stops delivery of messages until `resumeReading`, as far as the link can control it.
    func pauseReading()
    func resumeReading()
    /// Closes the link at once: no further messages arrive.
    func abort()
}

extension MessageLink {
    package var remoteAddress: SocketAddress? { nil }
    package var pendingBytes: Int { 0 }
    package var countsAsConnection: Bool { true }
    package func inOneWrite(_ body: () -> Void, observing observer: (UnsafeRawBufferPointer) -> Void) {
        inOneWrite(body)
    }
    package var framing: UInt8 { 0 }
    package func sendSharedFrames(_ frames: UnsafeRawBufferPointer) {}
}

/// The link of a closed connection: discards all messages, and keeps the host for its quota.
final class ClosedLink: MessageLink {
    let host: AddressKey?

    init(host: AddressKey?) { self.host = host }

    var isWritable: Bool { false }
    var memory: MemoryAccount? { nil }
    func send(_ body: (inout ByteBuffer) -> Void) {}
    func send(shared: SharedBytes, headCount: Int, head: (inout ByteBuffer) -> Void) {}
    func inOneWrite(_ body: () -> Void) {}
    func sendDrainPing() {}
    func close(_ code: WebSocketCloseCode, reason: String) {}
    func pauseReading() {}
    func resumeReading() {}
    func abort() {}
}

internal import Bytes
internal import Networking
internal import Transports
internal import WebSockets

/// What carries a connection's messages to its client: a WebSocket, or another object in this process. On the connection's
/// reactor.
protocol MessageLink: AnyObject {
    /// Whether less than the high watermark waits to be sent.
    var isWritable: Bool { get }
    /// Sends what `body` appends as one message.
    func send(_ body: (inout ByteBuffer) -> Void)
    /// Sends one message that begins with what `head` appends and ends with bytes that other connections share.
    func send(shared: SharedBytes, headCount: Int, head: (inout ByteBuffer) -> Void)
    /// Sends all that `body` writes in one system call.
    func inOneWrite(_ body: () -> Void)
    /// The same, and shows `look` what is sent, as far as links of the same `framing` would send the same; not always.
    func inOneWrite(_ body: () -> Void, showing look: (UnsafeRawBufferPointer) -> Void)
    /// Links that have the same turn messages into the same bytes; 0 for one that shows none.
    var framing: UInt8 { get }
    /// Sends what was shown of another link of the same framing.
    func sendAgain(_ frames: UnsafeRawBufferPointer)
    /// What is held for the client; nil for one in this process.
    var memory: MemoryAccount? { get }
    /// Bytes that wait for the client to take them, also those that other connections share.
    var pendingBytes: Int { get }
    /// The host at the other end; nil for this machine itself.
    var host: AddressKey? { get }
    /// The address at the other end; nil where that is not known.
    var remoteAddress: SocketAddress? { get }
    /// Has the connection told (`linkDidHear`) when the client has read all that was sent so far, and all that it had sent by then
    /// has come.
    func askWhetherHeard()
    func close(_ code: WebSocketCloseCode, reason: String)
    /// No message comes until `resumeReading`, as far as the link can see to it.
    func pauseReading()
    func resumeReading()
    /// Ends it at once: no message comes any more.
    func abort()
}

extension MessageLink {
    var remoteAddress: SocketAddress? { nil }
    var pendingBytes: Int { 0 }
    func inOneWrite(_ body: () -> Void, showing look: (UnsafeRawBufferPointer) -> Void) { inOneWrite(body) }
    var framing: UInt8 { 0 }
    func sendAgain(_ frames: UnsafeRawBufferPointer) {}
}

/// The link of a connection that is gone: nothing reaches anybody, and its host still has its share.
final class ClosedLink: MessageLink {
    let host: AddressKey?

    init(host: AddressKey?) { self.host = host }

    var isWritable: Bool { false }
    var memory: MemoryAccount? { nil }
    func send(_ body: (inout ByteBuffer) -> Void) {}
    func send(shared: SharedBytes, headCount: Int, head: (inout ByteBuffer) -> Void) {}
    func inOneWrite(_ body: () -> Void) {}
    func askWhetherHeard() {}
    func close(_ code: WebSocketCloseCode, reason: String) {}
    func pauseReading() {}
    func resumeReading() {}
    func abort() {}
}

package import Bytes
package import Transports

/// Who handles the bytes of a connection; called on the connection's reactor, from its loop alone: never from inside a
/// method of the channel.
package protocol ByteChannelDelegate: AnyObject {
    /// Bytes have come. They lie in the reactor's read buffer, may be changed in place and are gone after the call:
    /// the delegate consumes all of them.
    func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer)
    /// What waits to be sent fell below the low watermark after having been above the high one.
    func channelDidBecomeWritable(_ channel: ByteChannel)
    /// More is held for the connection than there is room for; it is to be ended, which happens at once unless the delegate does it.
    func channel(_ channel: ByteChannel, exceeds excess: MemoryExcess)
    /// Who is at the other end, when that is not who is at the socket's: a client behind a proxy.
    var representedAddress: SocketAddress? { get }
    /// The connection is gone; the last call. `error` is nil when the peer ended it in order or we closed it.
    func channelDidClose(_ channel: ByteChannel, error: TransportError?)
}

extension ByteChannelDelegate {
    package var representedAddress: SocketAddress? { nil }

    package func channel(_ channel: ByteChannel, exceeds excess: MemoryExcess) {
        channel.reset(TransportError(.tooLarge, excess.reason))
    }
}

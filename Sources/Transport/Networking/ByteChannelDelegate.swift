package import Bytes
package import Transports

/// The handler of a connection's bytes. It is called on the connection's reactor and only from its loop, never from within a
/// method of the channel.
package protocol ByteChannelDelegate: AnyObject {
    /// Called with received bytes. They are in the reactor's read buffer, can be changed in place, and are valid only during the
    /// call: the delegate consumes all of them.
    func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer)
    /// Called when the unsent output falls below the low watermark after it was above the high watermark.
    func channelDidBecomeWritable(_ channel: ByteChannel)
    /// Called when a limit on buffered memory is exceeded. The delegate closes the connection; the default implementation resets
    /// it immediately.
    func channel(_ channel: ByteChannel, exceeds excess: MemoryLimitExceeded)
    /// The address of the actual peer if it differs from that of the socket: a client behind a proxy.
    var representedAddress: SocketAddress? { get }
    /// Called last, when the connection is closed. `error` is nil if the peer ended it in order or the local side closed it.
    func channelDidClose(_ channel: ByteChannel, error: TransportError?)
}

extension ByteChannelDelegate {
    package var representedAddress: SocketAddress? { nil }

    package func channel(_ channel: ByteChannel, exceeds excess: MemoryLimitExceeded) {
        channel.reset(TransportError(.tooLarge, excess.reason))
    }
}

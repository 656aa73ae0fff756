package import Bytes
package import TrebuchetWire

/// A receiver of streams: a connection, or a reader in this process. Accessed on its loop.
package protocol StreamSubscriber: AnyObject {
    /// Whether the subscriber is in this process. Such a subscriber does not keep an actor active.
    var isLocal: Bool { get }
    /// The number of the connection, for event handlers; 0 for other subscribers.
    var connectionNumber: UInt64 { get }
    /// Whether the subscriber accepts data now.
    var isWritable: Bool { get }
    /// Whether updates to the subscriber are counted as deliveries. Updates that another node forwards are counted there.
    var countsDeliveries: Bool { get }
    /// Whether the subscriber is an inspector, which does not keep the actor active.
    var isInspector: Bool { get }
    /// Whether responses wait for stream updates, of this or other subscribers of the same loop.
    var isAwaited: Bool { get }

    /// Combines everything that `body` sends into one write.
    func inOneWrite(_ body: () -> Void)
    /// Combines everything that `body` sends into one write, and passes the bytes to `observer`; not always, and never if `framing`
    /// is 0.
    func inOneWrite(_ body: () -> Void, observing observer: (UnsafeRawBufferPointer) -> Void)
    /// The framing. Subscribers with equal framing and stream identifier receive the same bytes for the same values.
    var framing: UInt8 { get }
    /// Sends bytes that a subscriber with the same framing was sent, at most `SharedFrameCache.maximumBytes`. Returns false if it
    /// accepts no data now.
    func sendSharedFrames(_ frames: UnsafeRawBufferPointer) -> Bool
    /// Records that it was not writable. It catches up when it becomes writable.
    func didBlock(_ subscription: StreamSubscription)
    /// Sends the part after the stream's identifier of a message with a value or a delta.
    func sendStreamData(_ subscription: StreamSubscription, suffix: SharedBytes)
    func endStream(_ subscription: StreamSubscription, reason: StreamEndReason, error: TrebuchetError?)
    /// Reports that a stream it observes is up to date, so responses that waited for it may be sent.
    func streamDidCatchUp()
}

extension StreamSubscriber {
    package var connectionNumber: UInt64 { 0 }
    package var countsDeliveries: Bool { true }
    package var isInspector: Bool { false }
    package func inOneWrite(_ body: () -> Void, observing observer: (UnsafeRawBufferPointer) -> Void) {
        inOneWrite(body)
    }
    package var framing: UInt8 { 0 }
    package func sendSharedFrames(_ frames: UnsafeRawBufferPointer) -> Bool { false }
}

package import Bytes
package import TrebuchetWire

/// Who streams go to: a connection, or a reader in this process. On its loop.
package protocol StreamSubscriber: AnyObject {
    /// Whether it is in this process: it does not keep an actor that nobody else observes.
    var isLocal: Bool { get }
    /// Of a connection, for those who listen; 0 for others.
    var connectionNumber: UInt64 { get }
    /// Whether it takes anything now.
    var isWritable: Bool { get }
    /// Whether what it is sent counts as sent to somebody: not what another node hands on, which counts it there.
    var countsDeliveries: Bool { get }
    /// Whether it looks at the stream from inside and is nobody that the actor is there for.
    var isLooking: Bool { get }
    /// Whether answers wait for what streams show, here or for others of the same loop.
    var isAwaited: Bool { get }

    /// Sends all that `body` sends in one write.
    func inOneWrite(_ body: () -> Void)
    /// The same, and shows `look` the bytes that are sent; not always, and never where `framing` is 0.
    func inOneWrite(_ body: () -> Void, showing look: (UnsafeRawBufferPointer) -> Void)
    /// Those who have the same are sent the same bytes for the same values of a stream of the same identifier.
    var framing: UInt8 { get }
    /// Sends what was shown of one of the same framing, at most `CommonFrames.mostBytes`; false when it takes nothing now.
    func sendAgain(_ frames: UnsafeRawBufferPointer) -> Bool
    /// It could not be written to, and is told of what it has missed when it can.
    func fellBehind(_ subscription: StreamSubscription)
    /// Sends what follows the stream's identifier in a message with a value or a difference.
    func sendStreamData(_ subscription: StreamSubscription, suffix: SharedBytes)
    func endStream(_ subscription: StreamSubscription, reason: StreamEndReason, error: TrebuchetError?)
    /// A stream that it observes is up to date: answers that waited for it may leave.
    func streamsMayShow()
}

extension StreamSubscriber {
    package var connectionNumber: UInt64 { 0 }
    package var countsDeliveries: Bool { true }
    package var isLooking: Bool { false }
    package func inOneWrite(_ body: () -> Void, showing look: (UnsafeRawBufferPointer) -> Void) { inOneWrite(body) }
    package var framing: UInt8 { 0 }
    package func sendAgain(_ frames: UnsafeRawBufferPointer) -> Bool { false }
}

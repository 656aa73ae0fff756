/// What the kernel knows of bytes that have left.
extension ByteChannel {
    /// Bytes that the peer's system has acknowledged so far; nil when the kernel does not say.
    package var acknowledgedBytes: UInt64? { socket.delivery?.acknowledged }

    /// Whether the peer has taken some of what waits for it since this was asked last, and not yet all: so it is there.
    package func isPeerTaking() -> Bool {
        guard state == .open, let delivery = socket.delivery, delivery.isWaiting || waitingBytes > 0 else {
            extras?.acknowledged = nil
            return false
        }
        let extras = makeExtras()
        defer { extras.acknowledged = delivery.acknowledged }
        return extras.acknowledged.map { delivery.acknowledged > $0 } ?? false
    }
}

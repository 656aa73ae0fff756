/// Delivery information from the kernel.
extension ByteChannel {
    /// The number of bytes that the peer's system has acknowledged, or nil if the kernel does not report it.
    package var acknowledgedBytes: UInt64? { socket.delivery?.acknowledged }

    /// Returns whether the peer has acknowledged part of the pending output since the last call, but not all of it. Then the peer
    /// is alive.
    package func isPeerReading() -> Bool {
        guard state == .open, let delivery = socket.delivery, delivery.isWaiting || waitingBytes > 0 else {
            extras?.acknowledged = nil
            return false
        }
        let extras = makeExtras()
        defer { extras.acknowledged = delivery.acknowledged }
        return extras.acknowledged.map { delivery.acknowledged > $0 } ?? false
    }
}

extension ByteChannel {
    /// Bytes that the peer's system has acknowledged so far; nil when the kernel does not say.
    package var acknowledgedBytes: UInt64? { socket.delivery?.acknowledged }
}

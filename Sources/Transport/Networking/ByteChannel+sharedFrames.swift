internal import Bytes

/// Sending the same bytes to many connections.
extension ByteChannel {
    /// Works like `corked(_:)`, and passes the buffered output to `observer` before it is sent. The output may be incomplete: large
    /// output is sent in parts or queued elsewhere.
    package func corked(_ body: () -> Void, observing observer: (UnsafeRawBufferPointer) -> Void) {
        guard reactor.corked == nil else { return body() }
        cork()
        body()
        observer(reactor.output.pointee.bytes)
        uncork()
    }

    /// Immediately sends bytes that were passed to `observer` for another connection, without a copy unless this connection has
    /// queued output.
    package func writeShared(_ bytes: UnsafeRawBufferPointer) {
        guard state == .open, reactor.corked == nil, queue.isEmpty else { return write { $0.append(bytes) } }
        guard let sent = writeToSocket(bytes) else { return }
        if sent < bytes.count {
            queue.append(UnsafeRawBufferPointer(rebasing: bytes[sent...]))
        } else if !isAboveHigh && tls?.unsentBytes ?? 0 == 0 {
            return
        }
        flush()
    }
}

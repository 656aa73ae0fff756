internal import Bytes

/// What goes to many connections as it is.
extension ByteChannel {
    /// As `corked(_:)`, and shows `look` what is in the buffer before it is sent; not always: what is much leaves in parts, or waits elsewhere.
    package func corked(_ body: () -> Void, showing look: (UnsafeRawBufferPointer) -> Void) {
        guard reactor.corked == nil else { return body() }
        cork()
        body()
        look(reactor.output.pointee.bytes)
        uncork()
    }

    /// Sends at once what was shown of another connection: from where it lies, unless something waits here.
    package func writeAgain(_ bytes: UnsafeRawBufferPointer) {
        guard state == .open, reactor.corked == nil, queue.isEmpty else { return write { $0.append(bytes) } }
        guard let sent = hand(bytes) else { return }
        if sent < bytes.count {
            queue.append(UnsafeRawBufferPointer(rebasing: bytes[sent...]))
        } else if !isAboveHigh && tls?.unsentBytes ?? 0 == 0 {
            return
        }
        flush()
    }
}

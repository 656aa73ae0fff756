package import Bytes
internal import Transports

/// Accounting of buffered memory, and the time limit for pending shared bytes.
extension ByteChannel {
    /// The memory account of this connection, created at first use; nil if memory is not counted.
    package var account: MemoryAccount? {
        if let account = extras?.account { return account }
        guard state != .closed, let accounts = limits.accounts else { return nil }
        let made = accounts.makeAccount(for: remoteAddress)
        makeExtras().account = made
        return made
    }

    /// Updates the counted memory, after the socket accepted `taken` bytes.
    func updateBufferedBytes(_ taken: Int) {
        extras?.acceptedBytes += taken
        if queue.sharedCount > limits.sharedBytes { limitSlowness() }
        let own = queue.ownCount + (tls?.unsentBytes ?? 0) + (extras?.deferredOwnBytes ?? 0)
        let (current, before) = (own < Self.minimumCountedBytes ? 0 : own, extras?.bufferedBytes ?? 0)
        guard current != before, let account else { return }
        extras?.bufferedBytes = current
        guard let excess = account.adjustUsage(by: current - before) else { return }
        extras?.excess = excess
        queueForFlush()
    }

    /// Sets the number of bytes that the delegate writes later and the number of private ones. They count as unsent output.
    package func setDeferredBytes(_ bytes: Int, own: Int) {
        guard state == .open || bytes == 0 else { return }
        let extras = makeExtras()
        (extras.deferredBytes, extras.deferredOwnBytes) = (bytes, own)
        if bytes > limits.high { isAboveHigh = true }
        if state == .open { queueForFlush() }
    }

    /// Starts the time limit within which the peer must accept shared bytes that are pending only for it.
    func limitSlowness() {
        let extras = makeExtras()
        guard extras.slowness == nil else { return }
        extras.acceptedBytes = 0
        extras.slowness = reactor.schedule(after: limits.sharedPatience, for: self) { $0.endIfSlow() }
    }

    func endIfSlow() {
        guard let extras, state != .closed else { return }
        extras.slowness = nil
        guard queue.sharedCount > limits.sharedBytes else { return }
        guard extras.acceptedBytes < limits.sharedBytes else { return limitSlowness() }
        reset(
            TransportError(
                .timedOut,
                "the peer reads too slowly: \(queue.sharedCount) bytes of old versions are queued, and it read \(extras.acceptedBytes)"
                    + " bytes in \(limits.sharedPatience); the limit is \(limits.sharedBytes) (sharedBytesUnsent)"))
    }
}

package import Bytes
internal import Transports

/// What is held for a connection, and how long a peer may let shared bytes wait.
extension ByteChannel {
    /// What is held for this connection, to count with; made at the first call. Nil when nobody counts.
    package var account: MemoryAccount? {
        if let account = extras?.account { return account }
        guard state != .closed, let accounts = limits.accounts else { return nil }
        let made = accounts.makeAccount(for: remoteAddress)
        makeExtras().account = made
        return made
    }

    /// Counts what waits, after the socket took some of it.
    func noteHeld(_ taken: Int) {
        extras?.taken += taken
        if queue.sharedCount > limits.sharedBytes { limitSlowness() }
        let own = queue.ownCount + (tls?.unsentBytes ?? 0)
        let (held, before) = (own < Self.smallestHeld ? 0 : own, extras?.held ?? 0)
        guard held != before, let account else { return }
        extras?.held = held
        guard let excess = account.hold(held - before) else { return }
        extras?.excess = excess
        queueForFlush()
    }

    /// Gives the peer a time in which it is to take some of the shared bytes that wait for it alone.
    func limitSlowness() {
        let extras = makeExtras()
        guard extras.slowness == nil else { return }
        extras.taken = 0
        extras.slowness = reactor.schedule(after: limits.sharedPatience, for: self) { $0.endIfSlow() }
    }

    func endIfSlow() {
        guard let extras, state != .closed else { return }
        extras.slowness = nil
        guard queue.sharedCount > limits.sharedBytes else { return }
        guard extras.taken < limits.sharedBytes else { return limitSlowness() }
        reset(
            TransportError(
                .timedOut,
                "the peer does not read: \(queue.sharedCount) bytes of old versions wait for it, and it took \(extras.taken)"
                    + " in \(limits.sharedPatience); the limit is \(limits.sharedBytes) (sharedBytesUnsent)"))
    }
}

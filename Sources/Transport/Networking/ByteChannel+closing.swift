internal import Bytes
internal import Glibc
package import Transports

/// Closing a connection.
extension ByteChannel {
    /// Sends the queued output, then closes the connection. Further input is discarded, for at most 5 s and `limit` bytes
    /// (default 16 MiB).
    package func closeAfterFlush(throwingAwayAtMost limit: Int = 16 << 20) {
        guard state == .open else { return }
        state = .flushing
        isReadingPaused = false
        let extras = makeExtras()
        extras.maximumDiscarded = limit
        extras.closeTimer = reactor.schedule(after: Self.closeTimeout, for: self) { $0.close(error: nil) }
        if !isCorked { queueForFlush() }
    }

    /// Closes the connection immediately; queued output is lost.
    package func close() { close(error: nil) }

    /// Closes the connection immediately with a TCP reset: the peer loses unread data and gets an error. The delegate receives
    /// `error`.
    package func reset(_ error: TransportError? = nil) {
        guard state != .closed else { return }
        socket.resetWhenClosed()
        close(error: error)
    }

    /// Shuts down the write side and waits, with a time limit, for the peer's end of stream. Closing a socket with unread input
    /// would reset the connection, and the peer would lose the last output.
    func linger() {
        state = .lingering
        tls?.sendCloseNotify(on: socket)
        socket.shutdownWriting()
        watch()
    }

    func fail(_ call: String, _ number: Int32) {
        if let failure = tls?.failure { return close(error: failure) }
        guard number != 0 else { return close(error: nil) }
        close(error: .system(call, number, "connection to \(remoteAddress?.description ?? "peer")"))
    }

    /// Closes the connection; every path to the end uses this method. Resources are released immediately; the delegate is called
    /// at the end of the turn.
    func close(error: TransportError?) {
        guard state != .closed else { return }
        state = .closed
        extras?.closeTimer?.cancel()
        extras?.slowness?.cancel()
        if let account = extras?.account {
            account.release(extras?.bufferedBytes ?? 0)
            extras?.account = nil
        }
        if let error { makeExtras().error = error }
        if isStarted { reactor.remove(socket.descriptor, self) }
        socket.close()
        queue = WriteQueue()
        tls = nil
        if delegate != nil { queueForFlush() }
    }
}

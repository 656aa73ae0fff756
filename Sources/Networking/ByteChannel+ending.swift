internal import Bytes
internal import Glibc
package import Transports

/// How a connection ends.
extension ByteChannel {
    /// Sends what waits, then ends the connection. What still comes is thrown away: at most so many bytes, 16 MiB unless
    /// told, and for 5 s.
    package func closeAfterFlush(throwingAwayAtMost limit: Int = 16 << 20) {
        guard state == .open else { return }
        state = .flushing
        isReadingPaused = false
        let extras = makeExtras()
        extras.mostThrownAway = limit
        extras.patience = reactor.schedule(after: Self.patience, for: self) { $0.end(error: nil) }
        if !isCorked { queueForFlush() }
    }

    /// Ends the connection at once; what waits is lost.
    package func close() { end(error: nil) }

    /// Ends the connection at once with a reset: the peer loses what it has not read yet, and gets an error. The delegate
    /// hears `error`.
    package func reset(_ error: TransportError? = nil) {
        guard state != .closed else { return }
        socket.resetWhenClosed()
        end(error: error)
    }

    /// Our side has said all; the peer's end of the stream follows, or a time limit. A socket closed with bytes unread
    /// would reset the connection, and the peer would lose what we sent last.
    func linger() {
        state = .lingering
        tls?.end(on: socket)
        socket.shutdownWriting()
        watch()
    }

    func fail(_ call: String, _ number: Int32) {
        if let failure = tls?.failure { return end(error: failure) }
        guard number != 0 else { return end(error: nil) }
        end(error: .system(call, number, "connection to \(remoteAddress?.description ?? "peer")"))
    }

    /// The one way to the end, from wherever: what hangs on the connection goes at once, the delegate is told when the turn
    /// ends.
    func end(error: TransportError?) {
        guard state != .closed else { return }
        state = .closed
        extras?.patience?.cancel()
        extras?.slowness?.cancel()
        if let account = extras?.account {
            account.release(extras?.held ?? 0)
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

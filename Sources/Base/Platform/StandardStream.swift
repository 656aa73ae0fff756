#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif
internal import Synchronization

/// Standard output or standard error of the process. All writes to them go through this type.
///
/// A request path never blocks on the reader of a log and never fails with it: `write(soon:)` queues a line that the reader does
/// not accept immediately.
package final class StandardStream: Sendable {
    package static let output = StandardStream(1)
    package static let error = StandardStream(2)

    /// Opens `/dev/null` for standard streams that are closed when the process starts. Otherwise the next opened file or socket
    /// would get that descriptor and receive the lines of the stream. Call it at program start.
    package static func openMissing() {
        for descriptor in Int32(0)...2 where fcntl(descriptor, F_GETFD) < 0 {
            // `open` returns the lowest free descriptor; those below are open by then.
            _ = open("/dev/null", O_RDWR)
        }
    }

    /// The maximum wait for the last lines at program exit.
    private static let patience = Duration.seconds(1)
    private static let flushesAtExit: Bool = {
        atexit {
            StandardStream.output.flush(within: StandardStream.patience)
            StandardStream.error.flush(within: StandardStream.patience)
        }
        return true
    }()

    private let descriptor: Int32
    private let lines: LogQueue

    private init(_ descriptor: Int32) {
        self.descriptor = descriptor
        lines = LogQueue { _ = Self.write($0 + "\n", to: descriptor) }
    }

    /// Writes a line without blocking: immediately if the stream accepts it, otherwise from a thread. The line is dropped and
    /// counted while 1 MiB is queued, and dropped when the reader has closed the stream.
    ///
    /// - Parameter line: the line without its newline.
    package func write(soon line: String) {
        _ = Self.flushesAtExit
        lines.append(line) { line in
            guard isReady(for: line) else { return false }
            _ = Self.write(line + "\n", to: descriptor)
            return true
        }
    }

    /// Writes text behind the queued lines and blocks until it is written. Use it for a program whose output is its result.
    ///
    /// - Returns: 0, or the error: `EPIPE` when the reader has closed the stream.
    @discardableResult
    package func write(_ text: String) -> Int32 {
        lines.flush()
        return Self.write(text, to: descriptor)
    }

    /// Returns when all lines queued so far are written, or after `patience`.
    package func flush(within patience: Duration) { lines.flush(within: patience) }

    /// Returns whether writing `text` does not block: a writable pipe has room for `PIPE_BUF` bytes.
    private func isReady(for text: String) -> Bool {
        var state = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        return text.utf8.count < Int(PIPE_BUF) && poll(&state, 1, 0) == 1 && Int32(state.revents) & POLLOUT != 0
    }

    private static func write(_ text: String, to descriptor: Int32) -> Int32 {
        withoutBrokenPipeSignal {
            // One call, so that lines of several threads and processes stay whole.
            Array(text.utf8).withUnsafeBytes { bytes in
                var rest = bytes[...]
                while !rest.isEmpty {
                    let part = UnsafeRawBufferPointer(rebasing: rest)
                    #if canImport(Darwin)
                        let count = Darwin.write(descriptor, part.baseAddress, part.count)
                    #else
                        let count = Glibc.write(descriptor, part.baseAddress, part.count)
                    #endif
                    if count >= 0 {
                        rest = rest.dropFirst(count)
                    } else if errno == EAGAIN {
                        // Another process that shares the stream has made it non-blocking.
                        var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                        poll(&ready, 1, -1)
                    } else if errno != EINTR {
                        return errno
                    }
                }
                return 0
            }
        }
    }

    /// Runs `body` with SIGPIPE blocked for this thread, which is the one that receives it, and consumes a signal raised by the
    /// write.
    private static func withoutBrokenPipeSignal(_ body: () -> Int32) -> Int32 {
        var (pipe, before, pending) = (sigset_t(), sigset_t(), sigset_t())
        sigemptyset(&pipe)
        sigaddset(&pipe, SIGPIPE)
        sigpending(&pending)
        let wasPending = sigismember(&pending, SIGPIPE) == 1
        pthread_sigmask(SIG_BLOCK, &pipe, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        let error = body()
        guard error == EPIPE, !wasPending else { return error }
        sigpending(&pending)
        if sigismember(&pending, SIGPIPE) == 1 {
            var number: Int32 = 0
            sigwait(&pipe, &number)
        }
        return error
    }
}

/// The process's handling of SIGPIPE, which a write to a pipe or socket without a reader raises.
package enum BrokenPipes {
    /// Makes such writes fail with `EPIPE` instead of ending the process. An installed handler stays.
    package static func ignore() {
        var action = sigaction()
        sigaction(SIGPIPE, nil, &action)
        #if canImport(Darwin)
            let isDefault = action.__sigaction_u.__sa_handler == nil
        #else
            let isDefault = action.__sigaction_handler.sa_handler == nil
        #endif
        if isDefault { signal(SIGPIPE, SIG_IGN) }
    }

    /// Ends the process as the default action of SIGPIPE does: a shell shows status 141.
    package static func endProcess() -> Never {
        signal(SIGPIPE, SIG_DFL)
        var pipe = sigset_t()
        sigemptyset(&pipe)
        sigaddset(&pipe, SIGPIPE)
        pthread_sigmask(SIG_UNBLOCK, &pipe, nil)
        raise(SIGPIPE)
        _exit(128 + SIGPIPE)
    }
}

internal import Glibc
internal import Synchronization

/// Standard error, as the lines of a server go there: nobody waits for who reads it, and nobody ends when that goes.
package enum StandardError {
    /// Lines of all servers of the process that have no log of their own.
    static let lines = LogQueue { write($0) }
    private static let isHeld = Atomic<Bool>(false)

    /// As long as a program that ends waits for its last lines.
    static let patience = Duration.seconds(1)

    /// Writes a line soon; what was written is there when the program ends in order, unless nobody takes it.
    package static func write(soon line: String) {
        if !isHeld.exchange(true, ordering: .relaxed) {
            atexit { StandardError.lines.flush(within: StandardError.patience) }
        }
        lines.append(line)
    }

    /// Writes a line now, and waits until it is taken; one that nobody will ever take is lost.
    static func write(_ line: String) {
        // A reader that has gone would end the process.
        var (pipe, before) = (sigset_t(), sigset_t())
        sigemptyset(&pipe)
        sigaddset(&pipe, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &pipe, &before)
        // In one call, so that lines of several threads and processes stay whole.
        Array("\(line)\n".utf8).withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = Glibc.write(STDERR_FILENO, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
                if count >= 0 {
                    rest = rest.dropFirst(count)
                } else if errno == EAGAIN {
                    // Somebody who shares it does not want to wait.
                    var ready = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
                    poll(&ready, 1, -1)
                } else if errno != EINTR {
                    break
                }
            }
        }
        var now = timespec()
        while sigtimedwait(&pipe, nil, &now) == SIGPIPE {}
        pthread_sigmask(SIG_SETMASK, &before, nil)
    }
}

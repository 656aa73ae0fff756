import Glibc
import Synchronization

/// A server that a benchmark has started. It reads its input, which closes when the benchmark ends for any reason, and then
/// ends too.
package final class ServerChild: Sendable {
    static let endsWithInput = "TREBUCHET_ENDS_WITH_INPUT"

    private let pid: pid_t
    private let input: Int32
    private let isStopped = Mutex(false)

    init(_ pid: pid_t, input: Int32) {
        self.pid = pid
        self.input = input
    }

    /// Kills the process and waits for its end; only the first call has an effect.
    func stop() {
        isStopped.withLock { isStopped in
            guard !isStopped else { return }
            isStopped = true
            kill(pid, SIGKILL)
            var status: Int32 = 0
            waitpid(pid, &status, 0)
            close(input)
        }
    }

    /// Ends this process when its input closes, if a benchmark has started it.
    package static func endWithInput() {
        guard getenv(endsWithInput) != nil else { return }
        unsetenv(endsWithInput)
        var thread = pthread_t()
        pthread_create(
            &thread, nil,
            { _ in
                var byte: UInt8 = 0
                while true {
                    let count = read(STDIN_FILENO, &byte, 1)
                    if count == 0 || count < 0 && errno != EINTR { _exit(1) }
                }
            }, nil)
        pthread_detach(thread)
    }
}

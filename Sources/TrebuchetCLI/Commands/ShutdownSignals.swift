import Glibc
import Synchronization

/// SIGINT and SIGTERM, waited for on a thread of their own.
///
/// Make it before any other thread: it blocks the signals in this thread, and later threads inherit that.
final class ShutdownSignals: Sendable {
    private let action = Mutex<(@Sendable () async -> Void)?>(nil)

    init() {
        // A shell starts what it runs in the background with SIGINT ignored, and ignored signals are never waited for.
        signal(SIGINT, SIG_DFL)
        signal(SIGTERM, SIG_DFL)
        var set = Self.set
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    private static var set: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGINT)
        sigaddset(&set, SIGTERM)
        return set
    }

    /// Runs `action` at the first signal; the second ends the process with 130.
    func onFirst(_ action: @escaping @Sendable () async -> Void) {
        self.action.withLock { $0 = action }
        var thread = pthread_t()
        let context = Unmanaged.passRetained(self).toOpaque()
        let status = pthread_create(
            &thread, nil,
            { raw in
                Unmanaged<ShutdownSignals>.fromOpaque(raw!).takeRetainedValue().wait()
                return nil
            }, context)
        precondition(status == 0, "pthread_create: \(String(cString: strerror(status)))")
        pthread_detach(thread)
    }

    /// Waits for the first signal.
    func first() async {
        await withCheckedContinuation { continuation in onFirst { continuation.resume() } }
    }

    private func wait() {
        var set = Self.set
        var number: Int32 = 0
        sigwait(&set, &number)
        if let action = action.withLock({ $0 }) { Task { await action() } }
        sigwait(&set, &number)
        exit(130)
    }
}

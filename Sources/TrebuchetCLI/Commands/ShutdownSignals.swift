import Glibc
import Networking
import Synchronization

/// SIGINT, SIGTERM and, when it is asked for, SIGHUP, as something to wait for.
///
/// The handlers write into a pipe (all that a handler may do); a thread of its own reads from it. From the moment it is
/// made the signals do not end the process any more.
final class ShutdownSignals: Sendable {
    /// Made before the handlers are set and never closed.
    private static let pipeEnds: (read: Int32, write: Int32) = {
        var ends: [Int32] = [-1, -1]
        precondition(pipe(&ends) == 0, "pipe: \(String(cString: strerror(errno)))")
        return (ends[0], ends[1])
    }()

    private let action = Mutex<(@Sendable () async -> Void)?>(nil)
    private let hangUp = Mutex<(@Sendable () -> Void)?>(nil)

    init() {
        _ = Self.pipeEnds
        for number in [SIGINT, SIGTERM] { Self.pass(number) }
    }

    private static func pass(_ number: Int32) {
        signal(number) { number in
            var byte = UInt8(truncatingIfNeeded: number)
            _ = write(ShutdownSignals.pipeEnds.write, &byte, 1)
        }
    }

    /// Runs `action` at each SIGHUP; call it before `onFirst`.
    func onHangUp(_ action: @escaping @Sendable () -> Void) {
        hangUp.withLock { $0 = action }
        Self.pass(SIGHUP)
    }

    /// Runs `action` at the first signal; the second ends the process with 130.
    func onFirst(_ action: @escaping @Sendable () async -> Void) {
        self.action.withLock { $0 = action }
        startThread { self.wait() }
    }

    /// Waits for the first signal.
    func first() async {
        await withCheckedContinuation { continuation in onFirst { continuation.resume() } }
    }

    private func wait() {
        readOne()
        if let action = action.withLock({ $0 }) { Task { await action() } }
        readOne()
        exit(130)
    }

    /// Waits for the next signal that is to end the process.
    private func readOne() {
        while true {
            var byte: UInt8 = 0
            while read(Self.pipeEnds.read, &byte, 1) < 0 && errno == EINTR {}
            guard Int32(byte) == SIGHUP else { return }
            hangUp.withLock { $0 }?()
        }
    }
}

internal import Synchronization

/// A call that waits for its answer.
///
/// `@unchecked Sendable`: filled before it is handed to the client's reactor, and touched there alone; `isCancelled` is
/// atomic.
final class PendingCall: @unchecked Sendable {
    let number: UInt64
    let name: String
    /// The invocation; empty once it was sent.
    var message: [UInt8]
    /// The connection that it was sent over; 0 while it waits for one.
    var connection = 0
    /// Nanoseconds of the monotonic clock.
    let deadline: UInt64
    /// Set when the caller's task is cancelled, which may be before the call is started.
    let isCancelled = Atomic<Bool>(false)
    var continuation: CheckedContinuation<[UInt8]?, any Error>?

    init(number: UInt64, name: String, message: [UInt8], deadline: UInt64) {
        self.number = number
        self.name = name
        self.message = message
        self.deadline = deadline
    }

    func finish(_ outcome: Result<[UInt8]?, any Error>) {
        continuation?.resume(with: outcome)
        continuation = nil
    }
}

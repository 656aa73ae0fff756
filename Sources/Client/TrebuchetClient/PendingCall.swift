internal import Synchronization

/// A call that waits for its response.
///
/// `@unchecked Sendable`: initialized before it is passed to the client's event loop, and then accessed only there; `isCancelled`
/// is atomic.
final class PendingCall: @unchecked Sendable {
    let number: UInt64
    let name: String
    /// The message to send.
    enum Message {
        /// The encoded invocation; empty once it was sent.
        case encoded([UInt8])
        case repeatable(RetryableCall)
    }

    var message: Message
    /// The number of the connection over which it was last sent; 0 while it waits for one.
    var connection = 0
    /// The approximate size of the message in bytes.
    let byteCount: Int
    /// The size of the message as sent, in bytes.
    var sentByteCount = 0
    /// Nanoseconds of the monotonic clock.
    let deadline: UInt64
    /// Set when the caller's task is cancelled, possibly before the call starts.
    let isCancelled = Atomic<Bool>(false)
    var continuation: CheckedContinuation<[UInt8]?, any Error>?

    init(number: UInt64, name: String, message: Message, deadline: UInt64) {
        self.number = number
        self.name = name
        self.message = message
        self.deadline = deadline
        byteCount =
            switch message {
            case .encoded(let bytes): bytes.count
            case .repeatable(let repeatable): repeatable.byteCount
            }
    }

    /// True if its caller has an outcome.
    var isOver: Bool { continuation == nil }

    /// True if the server cannot have received it.
    var isUnsent: Bool {
        guard case .repeatable(let repeatable) = message else { return connection == 0 }
        return !repeatable.isSent
    }

    /// True if it may be sent again.
    var isRepeatable: Bool {
        guard case .repeatable(let repeatable) = message else { return false }
        return repeatable.isRetryable
    }

    func finish(_ outcome: Result<[UInt8]?, any Error>) {
        continuation?.resume(with: outcome)
        continuation = nil
    }
}

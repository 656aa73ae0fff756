internal import Synchronization

/// A call that waits for its answer.
///
/// `@unchecked Sendable`: filled before it is handed to the client's reactor, and touched there alone; `isCancelled` is
/// atomic.
final class PendingCall: @unchecked Sendable {
    let number: UInt64
    let name: String
    /// What is to be sent.
    enum Message {
        /// The invocation; empty once it was sent.
        case encoded([UInt8])
        case repeatable(RepeatableCall)
    }

    var message: Message
    /// The connection that it was sent over last; 0 while it waits for one.
    var connection = 0
    /// Bytes of the message, about.
    let byteCount: Int
    /// Bytes of the message, as it was sent.
    var sentByteCount = 0
    /// Nanoseconds of the monotonic clock.
    let deadline: UInt64
    /// Set when the caller's task is cancelled, which may be before the call is started.
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

    /// Whether its caller has an outcome.
    var isOver: Bool { continuation == nil }

    /// Whether the server cannot have seen it.
    var isUnsent: Bool {
        guard case .repeatable(let repeatable) = message else { return connection == 0 }
        return !repeatable.isSent
    }

    /// Whether it may be sent again.
    var isRepeatable: Bool {
        guard case .repeatable(let repeatable) = message else { return false }
        return repeatable.isKept
    }

    func finish(_ outcome: Result<[UInt8]?, any Error>) {
        continuation?.resume(with: outcome)
        continuation = nil
    }
}

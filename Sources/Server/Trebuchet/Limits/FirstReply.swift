internal import Synchronization

/// Resumes a continuation with the first reply only.
package final class FirstReply<Reply: Sendable>: Sendable {
    private let continuation: Mutex<CheckedContinuation<Reply?, Never>?>

    private init(_ continuation: CheckedContinuation<Reply?, Never>) { self.continuation = Mutex(continuation) }

    private func resume(_ reply: Reply?) {
        let continuation = continuation.withLock { continuation in
            defer { continuation = nil }
            return continuation
        }
        continuation?.resume(returning: reply)
    }

    /// Returns the reply that `begin` obtains; nil if it does not arrive in time.
    package static func wait(
        within limit: Duration, _ begin: (@escaping @Sendable (Reply?) -> Void) -> Void
    ) async -> Reply? {
        await withCheckedContinuation { continuation in
            let first = FirstReply(continuation)
            // Use no timer of a reactor, since that may be blocked.
            let timeout = Task {
                try? await Task.sleep(for: limit)
                first.resume(nil)
            }
            begin { reply in
                first.resume(reply)
                timeout.cancel()
            }
        }
    }
}

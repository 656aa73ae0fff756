internal import Synchronization

/// A fixed number of permits, granted in the order of requests.
///
/// A released permit goes directly to the longest-waiting task: no other task can take it in between. Usable from any
/// isolation, and by many loaders at once.
public final class ConcurrencyLimiter: Sendable {
    private typealias Continuation = UnsafeContinuation<Bool, Never>

    /// The free permits and the waiting tasks, under the lock.
    private struct Permits {
        var free: Int
        var waiting: [UInt64: Continuation] = [:]
        /// The waiting order, from `head` on. It still contains the numbers of cancelled requests.
        var order: [UInt64] = []
        var head = 0
        var lastNumber: UInt64 = 0

        mutating func acquire() -> Bool {
            guard free > 0 else { return false }
            free -= 1
            return true
        }

        mutating func enqueue(_ continuation: Continuation, _ number: UInt64) {
            waiting[number] = continuation
            if order.count > 2 * waiting.count + 64 {
                order = order[head...].filter { waiting[$0] != nil }
                head = 0
            }
            order.append(number)
        }

        mutating func popFirst() -> Continuation? {
            while head < order.count {
                let number = order[head]
                head += 1
                if let first = waiting.removeValue(forKey: number) { return first }
            }
            order.removeAll()
            head = 0
            return nil
        }
    }

    /// The number of permits.
    public let limit: Int
    // Continuations are resumed after the lock is released: the cancellation handler takes it too.
    private let permits: Mutex<Permits>

    /// Creates a limiter.
    ///
    /// - Parameter limit: At least 1.
    public init(limit: Int) {
        precondition(limit > 0, "the limit must be at least 1, not \(limit)")
        self.limit = limit
        permits = Mutex(Permits(free: limit))
    }

    /// Runs `body` with a permit. Throws `CancellationError` when the task is cancelled while it waits.
    public func withPermit<Result: Sendable>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
    ) async throws -> Result {
        try await acquire()
        defer { release() }
        return try await body()
    }

    /// The number of free permits.
    package var freeCount: Int { permits.withLock { $0.free } }
    /// The number of tasks that wait for a permit.
    package var waitingCount: Int { permits.withLock { $0.waiting.count } }

    private func acquire(isolation: isolated (any Actor)? = #isolation) async throws {
        try Task.checkCancellation()
        let number: UInt64? = permits.withLock { permits in
            if permits.acquire() { return nil }
            permits.lastNumber += 1
            return permits.lastNumber
        }
        guard let number else { return }
        let isGranted = await withTaskCancellationHandler {
            await withUnsafeContinuation(isolation: isolation) { (continuation: Continuation) in
                let isGranted: Bool? = permits.withLock { permits in
                    // Checked under the lock: either the handler below has run, or it will find the continuation.
                    if Task.isCancelled { return false }
                    if permits.acquire() { return true }
                    permits.enqueue(continuation, number)
                    return nil
                }
                if let isGranted { continuation.resume(returning: isGranted) }
            }
        } onCancel: {
            permits.withLock { $0.waiting.removeValue(forKey: number) }?.resume(returning: false)
        }
        guard isGranted else { throw CancellationError() }
    }

    private func release() {
        let next = permits.withLock { permits in
            let next = permits.popFirst()
            if next == nil { permits.free += 1 }
            return next
        }
        next?.resume(returning: true)
    }
}

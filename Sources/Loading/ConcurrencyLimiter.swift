internal import Synchronization

/// A number of permits that are given out in the order in which they are asked for.
///
/// A permit that comes back goes straight to who has waited longest: nobody can take it on the way. Usable from any
/// isolation, and by many loaders at once.
public final class ConcurrencyLimiter: Sendable {
    private typealias Continuation = UnsafeContinuation<Bool, Never>

    private struct Permits {
        var free: Int
        var waiting: [UInt64: Continuation] = [:]
        /// Whose turn it is, from `head` on; the numbers of those who have left since are still in it.
        var order: [UInt64] = []
        var head = 0
        var lastNumber: UInt64 = 0

        mutating func take() -> Bool {
            guard free > 0 else { return false }
            free -= 1
            return true
        }

        mutating func add(_ continuation: Continuation, _ number: UInt64) {
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

    /// How many permits there are.
    public let limit: Int
    // Continuations are resumed after the lock is released: the cancellation handler takes it too.
    private let permits: Mutex<Permits>

    /// - Parameter limit: At least 1.
    public init(limit: Int) {
        precondition(limit > 0, "a limit of \(limit) would let nobody in")
        self.limit = limit
        permits = Mutex(Permits(free: limit))
    }

    /// Runs `body` with a permit. Throws `CancellationError` when the task is cancelled while it waits for one.
    public func withPermit<Result: Sendable>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
    ) async throws -> Result {
        try await acquire()
        defer { release() }
        return try await body()
    }

    /// Permits that nobody has.
    package var freeCount: Int { permits.withLock { $0.free } }
    /// Tasks that wait for a permit.
    package var waitingCount: Int { permits.withLock { $0.waiting.count } }

    private func acquire(isolation: isolated (any Actor)? = #isolation) async throws {
        try Task.checkCancellation()
        let number: UInt64? = permits.withLock { permits in
            if permits.take() { return nil }
            permits.lastNumber += 1
            return permits.lastNumber
        }
        guard let number else { return }
        let isGranted = await withTaskCancellationHandler {
            await withUnsafeContinuation(isolation: isolation) { (continuation: Continuation) in
                let isGranted: Bool? = permits.withLock { permits in
                    // Asked under the lock: either the handler below has run, or it will find the continuation.
                    if Task.isCancelled { return false }
                    if permits.take() { return true }
                    permits.add(continuation, number)
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
        let heir = permits.withLock { permits in
            let heir = permits.popFirst()
            if heir == nil { permits.free += 1 }
            return heir
        }
        heir?.resume(returning: true)
    }
}

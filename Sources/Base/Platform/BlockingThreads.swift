#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif
internal import Synchronization

/// A small thread pool for work that waits for a disk, so that it blocks neither a reactor nor Swift's concurrency pool.
///
/// Threads start on demand and then stay. The process has one pool for blocking work, one for long
/// computations, and those of modules that wait for other systems.
package final class BlockingThreads: Sendable {
    package static let shared = BlockingThreads(4)
    /// The pool for long computations: as many threads as the machine runs at once, at most 4.
    private static let computing = BlockingThreads(min(4, max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))), yielding: true)

    /// The queue and the counts of threads.
    private struct State {
        var work = WorkQueue<@Sendable () -> Void>()
        var threads = 0
        /// The number of threads that wait for work, including threads that were woken and have not dequeued it yet.
        var idle = 0
    }

    private let maximumThreads: Int
    /// Whether the threads give way to other threads of the process, above all to reactors.
    private let isYielding: Bool
    private let state = Mutex(State())
    private let semaphore = ThreadSemaphore()

    /// - Parameter maximumThreads: the maximum number of threads; more work waits.
    package convenience init(_ maximumThreads: Int) { self.init(maximumThreads, yielding: false) }

    private init(_ maximumThreads: Int, yielding: Bool) {
        self.maximumThreads = maximumThreads
        isYielding = yielding
    }

    /// Queues `work`. The caller bounds the amount of queued work.
    package func run(_ work: @escaping @Sendable () -> Void) {
        let mustStart = state.withLock { state in
            state.work.append(work)
            guard state.idle < state.work.count, state.threads < maximumThreads else { return false }
            state.threads += 1
            state.idle += 1
            return true
        }
        if mustStart { startThread { self.serve() } }
        semaphore.signal()
    }

    /// Returns the result of a computation, or throws its error.
    ///
    /// - Parameter isLong: whether it takes long. Then it is queued on a thread of `BlockingThreads`; otherwise the caller runs
    ///   it.
    package static func computed<Value: Sendable, Failure: Error>(
        isLong: Bool, _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        guard isLong else { return try body() }
        let outcome: Result<Value, Failure> = await withCheckedContinuation { continuation in
            computing.run {
                continuation.resume(returning: Result { () throws(Failure) in try body() })
            }
        }
        return try outcome.get()
    }

    /// Lowers the priority of the calling thread.
    private func giveWay() {
        #if canImport(Darwin)
            pthread_set_qos_class_self_np(QOS_CLASS_UTILITY, 0)
        #else
            // On Linux, 0 means the calling thread. A failure has no effect but on latency.
            _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 10)
        #endif
    }

    /// Queues a long computation. The caller bounds the number of queued computations.
    package static func compute(_ work: @escaping @Sendable () -> Void) { computing.run(work) }

    private func serve() -> Never {
        if isYielding { giveWay() }
        while true {
            semaphore.wait()
            let work = state.withLock { state in
                state.idle -= 1
                return state.work.removeFirst()
            }
            work()
            state.withLock { $0.idle += 1 }
        }
    }
}

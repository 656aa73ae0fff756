#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif
internal import Synchronization

/// A few threads for work that waits for a disk, so that no reactor does and no thread of the pool. One for the process.
///
/// They begin when there is something to do for the first time, and then stay.
package final class BlockingThreads: Sendable {
    package static let shared = BlockingThreads(4)
    /// The same for computations that take long: as many threads as the machine runs at once, at most 4.
    private static let computing = BlockingThreads(min(4, max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))))

    private struct State {
        var work = WorkQueue<@Sendable () -> Void>()
        var threads = 0
        /// Threads that wait for work, and those that were woken and have not taken it yet.
        var idle = 0
    }

    private let most: Int
    private let state = Mutex(State())
    private let semaphore = ThreadSemaphore()

    private init(_ most: Int) { self.most = most }

    /// Runs `work` soon, behind what came before it. Who asks sees to it that not too much waits.
    package func run(_ work: @escaping @Sendable () -> Void) {
        let mustStart = state.withLock { state in
            state.work.append(work)
            guard state.idle < state.work.count, state.threads < most else { return false }
            state.threads += 1
            state.idle += 1
            return true
        }
        if mustStart { startThread { self.serve() } }
        semaphore.signal()
    }

    /// Returns what a computation returns, or throws what it throws.
    ///
    /// - Parameter isLong: whether it takes long. Then it runs on a thread of `BlockingThreads`, behind those that came before; else the caller
    ///   runs it.
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

    private func serve() -> Never {
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

internal import Glibc
internal import Synchronization

/// A few threads for work that waits for a disk, so that no reactor does and no thread of the pool. One for the process.
///
/// They begin when there is something to do for the first time, and then stay.
///
/// `@unchecked Sendable`: a POSIX semaphore at a fixed address is made to be used from several threads; the rest has a lock.
package final class BlockingThreads: @unchecked Sendable {
    package static let shared = BlockingThreads(4)

    private struct State {
        var work = WorkQueue<@Sendable () -> Void>()
        var threads = 0
        /// Threads that wait for work, and those that were woken and have not taken it yet.
        var idle = 0
    }

    private let most: Int
    private let state = Mutex(State())
    private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    private init(_ most: Int) {
        self.most = most
        sem_init(semaphore, 0, 0)
    }

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
        sem_post(semaphore)
    }

    private func serve() -> Never {
        while true {
            while sem_wait(semaphore) != 0 && errno == EINTR {}
            let work = state.withLock { state in
                state.idle -= 1
                return state.work.removeFirst()
            }
            work()
            state.withLock { $0.idle += 1 }
        }
    }
}

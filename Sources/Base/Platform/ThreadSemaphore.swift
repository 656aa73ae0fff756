#if canImport(Darwin)
    internal import Dispatch
#else
    internal import CEpoll
    internal import Glibc
#endif

/// A counting semaphore that blocks a thread until another signals. Never for a reactor's thread or a thread of the concurrency
/// pool.
package final class ThreadSemaphore: Sendable {
    #if canImport(Darwin)
        // Darwin has no unnamed POSIX semaphores.
        private let semaphore = DispatchSemaphore(value: 0)

        package init() {}

        package func signal() { semaphore.signal() }

        /// Takes one signal, and blocks until there is one.
        package func wait() { semaphore.wait() }

        /// Takes one signal, and blocks for at most `patience`. Returns false if none arrived.
        @discardableResult
        package func wait(within patience: Duration) -> Bool {
            semaphore.wait(timeout: .now() + .nanoseconds(Int(clamping: patience.nanoseconds))) == .success
        }
    #else
        // `nonisolated(unsafe)`: a system semaphore at a fixed address is designed for use from several threads.
        private nonisolated(unsafe) let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

        package init() { sem_init(semaphore, 0, 0) }

        deinit {
            sem_destroy(semaphore)
            semaphore.deallocate()
        }

        package func signal() { sem_post(semaphore) }

        /// Takes one signal, and blocks until there is one.
        package func wait() { while sem_wait(semaphore) != 0 && errno == EINTR {} }

        /// Takes one signal, and blocks for at most `patience`. Returns false if none arrived.
        @discardableResult
        package func wait(within patience: Duration) -> Bool {
            var end = timespec()
            clock_gettime(CLOCK_MONOTONIC, &end)
            let nanoseconds = UInt64(end.tv_nsec) + patience.nanoseconds % 1_000_000_000
            end.tv_sec += Int(clamping: patience.nanoseconds / 1_000_000_000 + nanoseconds / 1_000_000_000)
            end.tv_nsec = Int(nanoseconds % 1_000_000_000)
            while gnu_sem_clockwait(semaphore, CLOCK_MONOTONIC, &end) != 0 {
                if errno != EINTR { return false }
            }
            return true
        }
    #endif
}

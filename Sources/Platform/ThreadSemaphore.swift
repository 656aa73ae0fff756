#if canImport(Darwin)
    internal import Dispatch
#else
    internal import Glibc
#endif

/// Lets a thread wait until another has signalled; signals count. Never for a reactor's thread or one of the pool.
///
/// `@unchecked Sendable`: a semaphore of the system at a fixed address is made to be used from several threads.
package final class ThreadSemaphore: @unchecked Sendable {
    #if canImport(Darwin)
        // Darwin has no unnamed POSIX semaphores.
        private let semaphore = DispatchSemaphore(value: 0)

        package init() {}

        package func signal() { semaphore.signal() }

        /// Takes one signal, and waits when there is none.
        package func wait() { semaphore.wait() }
    #else
        private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

        package init() { sem_init(semaphore, 0, 0) }

        deinit {
            sem_destroy(semaphore)
            semaphore.deallocate()
        }

        package func signal() { sem_post(semaphore) }

        /// Takes one signal, and waits when there is none.
        package func wait() { while sem_wait(semaphore) != 0 && errno == EINTR {} }
    #endif
}

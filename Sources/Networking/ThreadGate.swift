internal import Glibc

/// A gate that a thread waits at until another opens it. For starting threads; never on a reactor.
///
/// `@unchecked Sendable`: a POSIX semaphore at a fixed address is made to be used from several threads.
final class ThreadGate: @unchecked Sendable {
    private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    init() { sem_init(semaphore, 0, 0) }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    func open() { sem_post(semaphore) }

    func wait() { while sem_wait(semaphore) != 0 && errno == EINTR {} }
}

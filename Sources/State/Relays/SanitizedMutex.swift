// Only in builds for ThreadSanitizer: see Docs/Internals/Testing.md.
#if TREBUCHET_THREAD_SANITIZER
    #if canImport(Darwin)
        internal import Darwin
    #else
        internal import Glibc
    #endif

    /// A replacement for `Synchronization.Mutex` on a lock that ThreadSanitizer supports.
    ///
    /// On Linux the original waits in the kernel, invisible to the sanitizer, and accesses under a contended lock are reported as
    /// data races. The sanitizer intercepts `pthread_mutex_lock`.
    @usableFromInline
    package struct SanitizedMutex<Value: ~Copyable>: ~Copyable {
        private let handle: UnsafeMutablePointer<pthread_mutex_t>
        private let value: UnsafeMutablePointer<Value>

        @usableFromInline
        package init(_ initial: consuming sending Value) {
            handle = .allocate(capacity: 1)
            handle.initialize(to: pthread_mutex_t())
            let error = pthread_mutex_init(handle, nil)
            precondition(error == 0, "pthread_mutex_init: \(error)")
            value = .allocate(capacity: 1)
            value.initialize(to: initial)
        }

        deinit {
            value.deinitialize(count: 1)
            value.deallocate()
            pthread_mutex_destroy(handle)
            handle.deallocate()
        }

        @usableFromInline
        package borrowing func withLock<Result: ~Copyable, Failure: Error>(
            _ body: (inout sending Value) throws(Failure) -> sending Result
        ) throws(Failure) -> sending Result {
            pthread_mutex_lock(handle)
            defer { pthread_mutex_unlock(handle) }
            return try body(&value.pointee)
        }
    }

    // Unchecked: `value` is accessed only under the lock, and `handle` never changes.
    extension SanitizedMutex: @unchecked Sendable where Value: ~Copyable {}

    // Shadows the type of the same name in Synchronization.
    @usableFromInline
    typealias Mutex<Value: ~Copyable> = SanitizedMutex<Value>
#endif

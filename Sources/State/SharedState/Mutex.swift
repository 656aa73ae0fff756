#if TREBUCHET_THREAD_SANITIZER
    internal import Relays

    /// Shadows the type of the same name in Synchronization, whose lock is invisible to ThreadSanitizer.
    typealias Mutex<Value: ~Copyable> = SanitizedMutex<Value>
#endif

#if TREBUCHET_THREAD_SANITIZER
    public import Relays

    /// Shadows the type of the same name in Synchronization, whose lock is invisible to ThreadSanitizer.
    @usableFromInline
    typealias Mutex<Value: ~Copyable> = SanitizedMutex<Value>
#endif

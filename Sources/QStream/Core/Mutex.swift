#if TREBUCHET_THREAD_SANITIZER
    public import Relays

    /// Found before the one of the same name in Synchronization, whose lock ThreadSanitizer does not see.
    @usableFromInline
    typealias Mutex<Value: ~Copyable> = SanitizedMutex<Value>
#endif

#if TREBUCHET_THREAD_SANITIZER
    import Relays

    /// Found before the one of the same name in Synchronization, whose lock ThreadSanitizer does not see.
    typealias Mutex<Value: ~Copyable> = SanitizedMutex<Value>
#endif

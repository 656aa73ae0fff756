#if TREBUCHET_THREAD_SANITIZER
    import Relays

    /// Takes precedence over the type of the same name in Synchronization, whose lock ThreadSanitizer does not support.
    typealias Mutex<Value: ~Copyable> = SanitizedMutex<Value>
#endif

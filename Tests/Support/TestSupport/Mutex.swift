#if TREBUCHET_THREAD_SANITIZER
    import Relays

    /// Takes precedence over the type of the same name in Synchronization, whose lock ThreadSanitizer does not see.
    typealias Mutex<Value: ~Copyable> = SanitizedMutex<Value>
#endif

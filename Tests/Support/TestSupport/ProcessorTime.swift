internal import Glibc

/// Processor time of work, independent of other load on the machine.
package enum ProcessorTime {
    /// The processor time of the calling thread, in nanoseconds.
    package static var ofThread: UInt64 {
        var now = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now)
        return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
    }
}

internal import Glibc

/// What work costs, whoever else uses the machine meanwhile.
package enum ProcessorTime {
    /// Nanoseconds for which the calling thread has run.
    package static var ofThread: UInt64 {
        var now = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now)
        return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
    }
}

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Glibc
#endif

/// The monotonic clock of the machine.
package enum MonotonicClock {
    /// Nanoseconds since an unspecified fixed moment.
    package static var now: UInt64 { read(CLOCK_MONOTONIC) }

    /// Nanoseconds since an unspecified fixed moment, including time in system sleep.
    package static var nowWithSleep: UInt64 {
        #if os(Linux)
            read(CLOCK_BOOTTIME)
        #else
            read(CLOCK_MONOTONIC)
        #endif
    }

    fileprivate static func read(_ clock: clockid_t) -> UInt64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
    }
}

/// The processor time of one thread. A reading is a system call of some 200 ns.
package struct ThreadTime {
    private var last: UInt64 = 0

    package init() {}

    /// Nanoseconds of processor time of the calling thread since the last call of this function, which must have been on the same thread.
    package mutating func sinceLastReading() -> UInt64 {
        let now = MonotonicClock.read(CLOCK_THREAD_CPUTIME_ID)
        defer { last = now }
        return now &- last
    }
}

/// The time of day, which can be adjusted: for timestamps shown to others, never for measurements.
package enum WallClock {
    /// Nanoseconds since 1970.
    package static var now: UInt64 { MonotonicClock.read(CLOCK_REALTIME) }
}

extension Duration {
    /// Whole nanoseconds, clamped to the range from 0 to the representable maximum (292 years).
    package var nanoseconds: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        let (product, overflow) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
        return overflow ? UInt64(Int64.max) : min(product, UInt64(Int64.max) / 2) + UInt64(attoseconds / 1_000_000_000)
    }

    /// Whole milliseconds, rounded up.
    package var milliseconds: Int { Int((nanoseconds + 999_999) / 1_000_000) }
}

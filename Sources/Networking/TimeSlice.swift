internal import Platform

/// A time that a row of small pieces of work may take before others have their turn.
///
/// The clock is read once for several pieces: as many as take about an eighth of the time, by what the last ones took, and at
/// most `longestStride`.
@frozen
public struct TimeSlice {
    @inlinable public static var longestStride: Int { 16 }

    @usableFromInline let budget: UInt64
    /// Pieces between two looks at the clock.
    public var stride: Int
    @usableFromInline var done = 0
    @usableFromInline var nextLook: Int
    /// 0 until the clock was looked at.
    @usableFromInline var start: UInt64 = 0
    @usableFromInline var last: UInt64 = 0

    /// - Parameters:
    ///   - budget: nanoseconds.
    ///   - stride: what an earlier slice of such work ended with. When its pieces were small, the time before the first look is
    ///     given away.
    @inlinable
    public init(budget: UInt64, stride: Int = Self.longestStride) {
        self.budget = budget
        self.stride = stride
        nextLook = stride
        if stride < Self.longestStride / 2 { begin() }
    }

    @usableFromInline
    mutating func begin() {
        start = MonotonicClock.now
        last = start
    }

    /// The same, from now on.
    package init(budget: UInt64, from now: UInt64) {
        self.budget = budget
        stride = 1
        nextLook = 1
        start = now
        last = now
    }

    /// Pieces that were done.
    @inlinable public var count: Int { done }

    /// Notes that a piece was done; whether the clock is to be looked at now.
    @inlinable
    public mutating func isLookDue() -> Bool {
        done &+= 1
        return done >= nextLook
    }

    /// Looks at the clock. `lastLook` is when somebody last did on this thread: when that is long ago, the first pieces may have
    /// been long ones, and the next look comes soon.
    @inline(never)
    package mutating func isUsedUp(lastLook: inout UInt64) -> Bool { isUsedUp(at: MonotonicClock.now, &lastLook) }

    @inline(__always)
    mutating func isUsedUp(at now: UInt64, _ lastLook: inout UInt64) -> Bool {
        defer {
            last = now
            lastLook = now
            nextLook = done + stride
        }
        guard start > 0 else {
            start = now
            if now &- lastLook > budget / 2 { stride = 1 }
            // They may all have been long, or the thread has slept before: then it costs one more turn.
            return now &- lastLook >= budget
        }
        let took = max(1, now &- last)
        stride = max(1, min(Self.longestStride, Int(clamping: budget / 8 &* UInt64(stride) / took)))
        return now &- start >= budget
    }
}

/// What a reactor calls when a descriptor is ready; always on the reactor's thread.
package class ReadinessHandler {
    /// `events` are the bits of `EPOLLIN`, `EPOLLOUT`, `EPOLLERR`, `EPOLLHUP`, `EPOLLRDHUP`.
    func ready(_ events: UInt32) {}
}

/// What has more to do than a turn has room for.
package protocol InLine: AnyObject {
    /// Does some of it, for about 100 µs, and stands in line again when it has more.
    func goOn()
}

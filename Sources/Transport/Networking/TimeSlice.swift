internal import Platform

/// A time budget for a series of small work items, after which other work gets its turn.
///
/// The clock is read once for several items: as many as take about an eighth of the budget, estimated from the last ones, at most
/// twice as many as before, and at most `maximumStride`. Long items should announce their size with `isCheckDue(bytes:)`.
@frozen
public struct TimeSlice {
    /// The maximum number of items between two clock readings.
    @inlinable public static var maximumStride: Int { 16 }

    @usableFromInline let budget: UInt64
    @usableFromInline let mostItems: Int
    /// The number of items between two clock readings.
    public var stride: Int
    @usableFromInline var done = 0
    @usableFromInline var nextCheck: Int
    /// The time of the first clock reading, or 0 before it.
    @usableFromInline var start: UInt64 = 0
    @usableFromInline var last: UInt64 = 0

    /// Creates a time slice that starts at its first clock reading.
    ///
    /// - Parameters:
    ///   - budget: the duration in nanoseconds.
    ///   - stride: the final stride of an earlier slice of such work. If its items were small, the time before the first reading
    ///     is
    ///     not counted.
    ///   - mostItems: the maximum number of items between two clock readings.
    @inlinable
    public init(budget: UInt64, stride: Int = Self.maximumStride, mostItems: Int = Self.maximumStride) {
        self.budget = budget
        self.mostItems = mostItems
        let stride = min(stride, mostItems)
        self.stride = stride
        nextCheck = stride
        if stride < Self.maximumStride / 2 { restart() }
    }

    @usableFromInline
    mutating func restart() {
        start = MonotonicClock.now
        last = start
    }

    /// Creates a time slice that starts at `now`.
    ///
    /// - Parameter mostItems: the number of items between two clock readings; lower where single items may take long.
    package init(budget: UInt64, from now: UInt64, mostItems: Int = Self.maximumStride) {
        self.budget = budget
        self.mostItems = mostItems
        stride = 1
        nextCheck = 1
        start = now
        last = now
    }

    /// The number of completed items.
    @inlinable public var count: Int { done }

    /// Counts a completed item. Returns whether the clock must be read now.
    @inlinable
    public mutating func isCheckDue() -> Bool {
        done &+= 1
        return done >= nextCheck
    }

    /// Counts a completed item of this size. Returns whether the clock must be read now: always after 4 KiB.
    @inlinable
    public mutating func isCheckDue(bytes: Int) -> Bool {
        done &+= 1
        nextCheck &-= bytes &>> 8
        return done >= nextCheck
    }

    /// Reads the clock and returns whether the budget is used up. `lastClockReading` is the last clock reading on this thread: if it is
    /// old, the first items may have been long, and the next reading comes soon.
    @inline(never)
    package mutating func isUsedUp(lastClockReading: inout UInt64) -> Bool {
        isUsedUp(at: MonotonicClock.now, &lastClockReading)
    }

    @inline(__always)
    mutating func isUsedUp(at now: UInt64, _ lastClockReading: inout UInt64) -> Bool {
        defer {
            last = now
            lastClockReading = now
            nextCheck = done + stride
        }
        guard start > 0 else {
            start = now
            if now &- lastClockReading > budget / 2 { stride = 1 }
            // All items may have been long, or the thread may have slept before; then this costs one more turn.
            return now &- lastClockReading >= budget
        }
        let elapsed = max(1, now &- last)
        // One short item says little about the next ones, so the stride grows slowly.
        let fitting = Int(clamping: budget / 8 &* UInt64(stride) / elapsed)
        stride = max(1, min(mostItems, stride &* 2, fitting))
        return now &- start >= budget
    }
}

/// The object that a reactor calls when a descriptor is ready, always on the reactor's thread.
package class ReadinessHandler {
    /// Handles readiness. `events` are the bits of `EPOLLIN`, `EPOLLOUT`, `EPOLLERR`, `EPOLLHUP`, `EPOLLRDHUP`.
    func ready(_ events: UInt32) {}
}

/// Work that takes more than its share of one turn.
package protocol Resumable: AnyObject {
    /// Continues the work for about 100 µs, and queues itself again if there is more.
    func resume()
}

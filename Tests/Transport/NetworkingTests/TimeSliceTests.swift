import Platform
import Testing

@testable import Networking

@Suite struct TimeSliceTests {
    @Test("a late first check ends the slice, and the next check follows one piece")
    func late() {
        var slice = TimeSlice(budget: 1_000_000)
        var isDue = false
        for _ in 0..<TimeSlice.maximumStride { isDue = slice.isCheckDue() }
        #expect(isDue)
        // A second ago.
        var lastClockReading = MonotonicClock.now &- 1_000_000_000
        let isUsedUp = slice.isUsedUp(lastClockReading: &lastClockReading)
        #expect(isUsedUp)
        #expect(slice.stride == 1)
        #expect(lastClockReading &+ 60_000_000_000 > MonotonicClock.now)
    }

    /// Pieces until a check is due.
    private static func piecesToLook(_ slice: inout TimeSlice) -> Int {
        var count = 1
        while !slice.isCheckDue() { count += 1 }
        return count
    }

    @Test(
        "the first check of a slice without a start time uses the last check of any slice",
        arguments: [
            // Budget 1000: long ago is more than half of it, and too long ago is all of it.
            (0, false, 16), (500, false, 16), (501, false, 1), (999, false, 1), (1_000, true, 1), (5_000, true, 1),
        ] as [(UInt64, Bool, Int)])
    func firstCheck(since: UInt64, isUsedUp: Bool, stride: Int) {
        var slice = TimeSlice(budget: 1_000)
        #expect(Self.piecesToLook(&slice) == 16)
        var lastClockReading = 1_000_000 - since
        #expect(slice.isUsedUp(at: 1_000_000, &lastClockReading) == isUsedUp)
        #expect(lastClockReading == 1_000_000)
        #expect(slice.stride == stride)
        #expect(Self.piecesToLook(&slice) == stride)
        // From now on its own start counts.
        #expect(!slice.isUsedUp(at: 1_000_999, &lastClockReading))
        #expect(slice.isUsedUp(at: 1_001_000, &lastClockReading))
    }

    @Test("a slice is used up when its time is over, counted from its start")
    func from() {
        var slice = TimeSlice(budget: 1_000, from: 5_000)
        var lastClockReading: UInt64 = 0
        #expect(Self.piecesToLook(&slice) == 1)
        #expect(!slice.isUsedUp(at: 5_999, &lastClockReading))
        #expect(lastClockReading == 5_999)
        #expect(slice.isUsedUp(at: 6_000, &lastClockReading))
        #expect(slice.isUsedUp(at: 6_001, &lastClockReading))
        #expect(slice.count == 1)
    }

    @Test(
        "the clock is checked about eight times in the budget, by the duration of the last pieces",
        arguments: [
            // One piece took so long of 8,000: the next check follows as many as take 1,000, and 16 at most.
            (8_000, 1), (1_000, 1), (501, 1), (500, 2), (333, 3), (100, 10), (62, 16), (1, 16), (0, 16),
        ] as [(UInt64, Int)])
    func stride(took: UInt64, stride: Int) {
        var slice = TimeSlice(budget: 8_000, from: 1_000)
        slice.stride = 16
        var lastClockReading: UInt64 = 0
        _ = slice.isCheckDue()
        _ = slice.isUsedUp(at: 1_000 + took * 16, &lastClockReading)
        #expect(slice.stride == stride)
        #expect(Self.piecesToLook(&slice) == stride)
        // The following ones take four times as long each: a check follows a quarter of them.
        _ = slice.isUsedUp(at: 1_000 + took * 16 + 4 * max(took, 1) * UInt64(stride), &lastClockReading)
        #expect(slice.stride == max(1, min(16, Int(1_000 / (4 * max(took, 1))))))
    }

    @Test("after short items the clock is read at most half as often as before, and never more seldom than given")
    func growth() {
        for (most, strides) in [(16, [2, 4, 8, 16, 16]), (4, [2, 4, 4, 4, 4])] {
            var slice = TimeSlice(budget: 8_000, from: 1_000, mostItems: most)
            var lastClockReading: UInt64 = 0
            for stride in strides {
                _ = slice.isUsedUp(at: 1_000, &lastClockReading)
                #expect(slice.stride == stride)
            }
        }
    }

    @Test(
        "the clock is read after 4 KiB, and earlier after more items",
        arguments: [(0, 16), (100, 16), (256, 8), (1 << 10, 4), (4 << 10, 1), (1 << 20, 1)])
    func bytes(size: Int, items: Int) {
        var slice = TimeSlice(budget: 8_000)
        var count = 1
        while !slice.isCheckDue(bytes: size) { count += 1 }
        #expect(count == items)
    }

    @Test(
        "a slice that had large pieces before checks the clock at its start, one with small pieces does not",
        arguments: [(1, true), (7, true), (8, false), (16, false)])
    func earlier(stride: Int, looksAtFirst: Bool) {
        var slice = TimeSlice(budget: 60_000_000_000, stride: stride)
        #expect(Self.piecesToLook(&slice) == stride)
        // Long after the last check of any slice: used up, unless this slice has checked before.
        var lastClockReading: UInt64 = 0
        #expect(slice.isUsedUp(at: MonotonicClock.now, &lastClockReading) == !looksAtFirst)
    }
}

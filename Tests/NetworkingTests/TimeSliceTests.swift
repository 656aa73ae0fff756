import Testing

@testable import Networking

@Suite struct TimeSliceTests {
    @Test("a first look that comes too late ends the slice, and the next look comes after one piece")
    func late() {
        var slice = TimeSlice(budget: 1_000_000)
        var isDue = false
        for _ in 0..<TimeSlice.longestStride { isDue = slice.isLookDue() }
        #expect(isDue)
        // A second ago.
        var lastLook = MonotonicClock.now &- 1_000_000_000
        let isUsedUp = slice.isUsedUp(lastLook: &lastLook)
        #expect(isUsedUp)
        #expect(slice.stride == 1)
    }
}

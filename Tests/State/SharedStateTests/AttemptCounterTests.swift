import Testing

@testable import SharedState

struct AttemptCounterTests {
    @Test(
        "an attempt that ends after a later one does not count",
        arguments: [([1, 2], [true, true]), ([2, 1], [true, false])])
    func order(ends: [UInt64], counts: [Bool]) {
        var attempts = AttemptCounter()
        let begun = [attempts.startAttempt(), attempts.startAttempt()]
        #expect(begun == [1, 2])
        #expect(attempts.pendingCount == 2)
        let outcome = ends.map { attempts.endAttempt($0) }
        #expect(outcome == counts)
        #expect(attempts.pendingCount == 0)
    }
}

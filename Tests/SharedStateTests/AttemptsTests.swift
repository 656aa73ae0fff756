import Testing

@testable import SharedState

struct AttemptsTests {
    @Test("an attempt that ends after a later one does not count")
    func late() {
        var attempts = Attempts()
        let first = attempts.begin()
        let second = attempts.begin()
        #expect(attempts.pendingCount == 2)
        #expect(attempts.end(second))
        #expect(!attempts.end(first))
        #expect(attempts.pendingCount == 0)
    }

    @Test("attempts that end in order all count")
    func inOrder() {
        var attempts = Attempts()
        let first = attempts.begin()
        let second = attempts.begin()
        #expect(attempts.end(first))
        #expect(attempts.end(second))
    }
}

import Platform
import Testing

struct BackoffTests {
    @Test("a wait doubles with each failure, up to the limit, however many there are")
    func doubles() {
        let backoff = Backoff(first: .milliseconds(300), limit: .seconds(1))
        let waits = [-1, 0, 1, 2, 3, 4, Int.max].map { backoff.delay(afterFailures: $0) }
        #expect(
            waits == [.zero, .zero, .milliseconds(300), .milliseconds(600), .seconds(1), .seconds(1), .seconds(1)])
    }

    @Test("the limit applies to the first wait too, and a zero wait stays zero")
    func edges() {
        #expect(Backoff(first: .seconds(2), limit: .seconds(1)).delay(afterFailures: 1) == .seconds(1))
        #expect(Backoff(first: .zero, limit: .seconds(1)).delay(afterFailures: Int.max) == .zero)
    }
}

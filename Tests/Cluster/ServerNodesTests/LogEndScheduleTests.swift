import Platform
import Testing

@testable import Trebuchet
@testable import TrebuchetNodes

/// The schedule of log comparisons, with times given by the test.
@Suite struct LogEndScheduleTests {
    private static let second: UInt64 = 1_000_000_000
    private var schedule = LogEndSchedule(
        connections: 1, settling: .seconds(10), backoff: Backoff(first: .seconds(1), limit: .seconds(4)))

    private mutating func due(_ connections: Int, at seconds: UInt64) -> LogEndSchedule.Check? {
        schedule.due(connections: connections, at: seconds * Self.second)
    }

    private mutating func check(left: [String] = [], at seconds: UInt64) {
        schedule.didCheck(left: left, at: seconds * Self.second)
    }

    @Test("all logs are compared after a new connection, and once more when all slots have owners again")
    mutating func twice() {
        let none = due(1, at: 100)
        #expect(none == nil)
        let first = due(2, at: 101)
        check(at: 102)
        let early = due(2, at: 111)
        let second = due(2, at: 112)
        check(at: 113)
        let last = due(2, at: 1_000)
        #expect(first == .init() && early == nil && second == .init(isSettled: true) && last == nil)
    }

    @Test("only logs without a response are compared again, later after each failure")
    mutating func failures() {
        #expect(due(2, at: 100) == .init())
        var times: [UInt64] = []
        var now: UInt64 = 100
        for _ in 0..<5 {
            check(left: ["a", "b"], at: now)
            let failed = now
            while due(2, at: now) == nil { now += 1 }
            times.append(now - failed)
            #expect(due(2, at: now) == .init(names: ["a", "b"]))
        }
        #expect(times == [1, 2, 4, 4, 4])
        // A short-lived connection does not end the pause.
        check(left: ["b"], at: now)
        #expect(due(3, at: now) == nil && due(4, at: now + 3) == nil && due(4, at: now + 4) == .init())
        check(at: now + 4)
        #expect(due(5, at: now + 4) == .init())
    }
}

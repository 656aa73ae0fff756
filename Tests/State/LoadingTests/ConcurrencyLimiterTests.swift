import Loading
import Testing

@Suite(.timeLimit(.minutes(5))) struct ConcurrencyLimiterTests {
    @Test("a released permit goes to the longest waiter")
    func order() async throws {
        let limiter = ConcurrencyLimiter(limit: 1)
        let served = TaskCounter()
        try await withThrowingTaskGroup(of: Void.self) { group in
            try await limiter.withPermit {
                for number in 0..<50 {
                    group.addTask { try await limiter.withPermit { served.note(number) } }
                    while limiter.waitingCount <= number { await Task.yield() }
                }
            }
            try await group.waitForAll()
        }
        #expect(served.notes == Array(0..<50))
        #expect(limiter.freeCount == 1)
    }

    @Test("under concurrent cancellation the limit holds and no permit is lost")
    func contention() async {
        let limiter = ConcurrencyLimiter(limit: 3)
        let inside = TaskCounter()
        for round in 0..<200 {
            let tasks = (0..<20).map { _ in
                Task {
                    try? await limiter.withPermit {
                        inside.enter()
                        await Task.yield()
                        inside.leave()
                    }
                }
            }
            for (index, task) in tasks.enumerated() where (index + round).isMultiple(of: 3) {
                await Task.yield()
                task.cancel()
            }
            for task in tasks { await task.ended }
            #expect(limiter.freeCount == 3)
            #expect(limiter.waitingCount == 0)
        }
        #expect(inside.most == 3)
    }

    @Test("a body that throws releases its permit")
    func throwing() async {
        let limiter = ConcurrencyLimiter(limit: 1)
        await #expect(throws: Refusal.self) {
            try await limiter.withPermit { throw Refusal() }
        }
        #expect(limiter.freeCount == 1)
    }
}

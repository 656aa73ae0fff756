import Testing

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// Calls that wait for an actor to be made.
@Suite struct ActorQueueTests {
    private struct Gone: Error {}

    @Test("those that wait are resumed in their order, some at a time; who comes meanwhile is behind them")
    func parts() {
        let queue = ActorQueue(for: Parties(connection: 1, principal: nil, host: nil))
        var resumed: [Int] = []
        for number in 0..<100 { _ = queue.add { _ in resumed.append(number) } }
        #expect(queue.resume(atMost: 32, .failure(Gone())))
        #expect(resumed == Array(0..<32))
        #expect(queue.count == 68)
        _ = queue.add { _ in resumed.append(100) }
        #expect(queue.resume(atMost: 32, .failure(Gone())))
        #expect(queue.resume(atMost: 32, .failure(Gone())))
        #expect(!queue.resume(atMost: 32, .failure(Gone())))
        #expect(resumed == Array(0...100))
        #expect(queue.count == 0)
    }

    @Test("who has left is not resumed, and what it held is freed at once")
    func leaving() {
        final class Held {}
        let queue = ActorQueue(for: Parties(connection: 1, principal: nil, host: nil))
        var resumed: [Int] = []
        weak var held: Held?
        var waiters: [ActorWaiter] = []
        for number in 0..<50 {
            let load = Held()
            if number == 7 { held = load }
            waiters.append(
                queue.add { _ in
                    resumed.append(number); _ = load
                })
        }
        #expect(held != nil)
        waiters[7].leave()
        #expect(held == nil)
        #expect(queue.resume(atMost: 10, .failure(Gone())))
        for waiter in waiters[20...] { waiter.leave() }
        #expect(queue.count == 10)
        #expect(!queue.resume(atMost: 32, .failure(Gone())))
        #expect(resumed == Array(0..<7) + Array(8..<20))
    }
}

import Platform
import Synchronization
import Testing

@testable import Networking
@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Suite(.timeLimit(.minutes(5))) struct CrossReactorCallQueueTests {
    private final class Log: Sendable {
        let entries = Mutex<[String]>([])
        func record(_ entry: String) { entries.withLock { $0.append(entry) } }
    }

    /// Computes for longer than a connection's share of a turn.
    private static func burn() {
        let end = MonotonicClock.now + 200_000
        while MonotonicClock.now < end {}
    }

    @Test("long calls of one connection do not delay another connection, and both keep their order")
    func share() async throws {
        let reactor = try Reactor(name: "test-crossing")
        let log = Log()
        let (one, other) = (CrossReactorCallQueue(on: reactor), CrossReactorCallQueue(on: reactor))
        let begin = ThreadSemaphore()
        reactor.execute { begin.wait() }
        let add = { (number: Int) in
            one.enqueue {
                Self.burn()
                log.record("one \(number)")
            }
        }
        // The calls of the other connection are early: a waiting reactor admits and runs one call in each turn.
        for number in 0..<3 { add(number) }
        for number in 0..<3 { other.enqueue { log.record("other \(number)") } }
        for number in 3..<50 { add(number) }
        begin.signal()
        await withCheckedContinuation { last in one.enqueue { last.resume() } }
        let entries = log.entries.withLock { $0 }
        #expect(entries.filter { $0.hasPrefix("one") } == (0..<50).map { "one \($0)" })
        #expect(entries.filter { $0.hasPrefix("other") } == (0..<3).map { "other \($0)" })
        #expect(try #require(entries.firstIndex(of: "other 2")) < 10)
    }

    @Test("while megabyte responses are in transit, the next call waits")
    func unread() async throws {
        let reactor = try Reactor(name: "test-crossing")
        let log = Log()
        let crossing = CrossReactorCallQueue(on: reactor)
        crossing.enqueue {
            log.record("first")
            crossing.addUnreadBytes(CrossReactorCallQueue.maximumUnreadBytes + 5)
        }
        crossing.enqueue { log.record("second") }
        // More turns than the call would need.
        for _ in 0..<10 { await reactor.perform {} }
        #expect(log.entries.withLock { $0 } == ["first"])
        crossing.unreadCount = 5
        crossing.markResponsesRead()
        for _ in 0..<10 { await reactor.perform {} }
        #expect(log.entries.withLock { $0 } == ["first"])
        crossing.unreadCount = CrossReactorCallQueue.maximumUnreadBytes
        crossing.markResponsesRead()
        await withCheckedContinuation { last in crossing.enqueue { last.resume() } }
        #expect(log.entries.withLock { $0 } == ["first", "second"])
    }
}

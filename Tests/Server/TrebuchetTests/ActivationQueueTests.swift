import Platform
import Testing
import Transports
import WebSockets

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// The queue of calls that wait for the activation of an actor.
@Suite struct ActivationQueueTests {
    private struct CallerGone: Error {}

    private static let first = QuotaScopes(connection: 1, principal: "ada", host: nil)
    private static let second = QuotaScopes(connection: 2, principal: "bob", host: nil)
    private static let third = QuotaScopes(connection: 3, principal: "ada", host: nil)

    /// Resumes up to `count` waiters; returns whether more wait.
    private func resume(_ queue: ActivationQueue, _ count: Int, isLongStep: Bool = false) -> Bool {
        var left = count
        return queue.resume(isLongStep: isLongStep, .failure(CallerGone())) {
            left -= 1
            return left == 0
        }
    }

    @Test("waiters resume in order and in batches; a new waiter is queued behind them")
    func parts() {
        let queue = ActivationQueue()
        var resumed: [Int] = []
        for number in 0..<100 { _ = queue.addWaiter(for: Self.first, isLarge: false) { _ in resumed.append(number) } }
        #expect(resume(queue, 32))
        #expect(resumed == Array(0..<32))
        #expect(queue.count == 68)
        _ = queue.addWaiter(for: Self.first, isLarge: false) { _ in resumed.append(100) }
        #expect(resume(queue, 32))
        #expect(resume(queue, 32))
        #expect(!resume(queue, 32))
        #expect(resumed == Array(0...100))
        #expect(queue.count == 0)
    }

    @Test("a waiter that left is not resumed, and its memory is freed at once")
    func leaving() {
        final class RetainedByWaiter {}
        let queue = ActivationQueue()
        var resumed: [Int] = []
        weak var retained: RetainedByWaiter?
        var waiters: [ActivationWaiter] = []
        for number in 0..<50 {
            let load = RetainedByWaiter()
            if number == 7 { retained = load }
            waiters.append(
                queue.addWaiter(for: Self.first, isLarge: false) { _ in
                    resumed.append(number); _ = load
                })
        }
        #expect(retained != nil)
        waiters[7].cancel()
        #expect(retained == nil)
        #expect(resume(queue, 10))
        for waiter in waiters[20...] { waiter.cancel() }
        #expect(queue.count == 10)
        #expect(!resume(queue, 32))
        #expect(resumed == Array(0..<7) + Array(8..<20))
    }

    @Test("a large call is resumed in a long step, one in each, and later calls wait for it")
    func large() {
        let queue = ActivationQueue()
        var resumed: [Int] = []
        var waiters: [ActivationWaiter] = []
        for number in 0..<6 {
            let isLarge = (2...4).contains(number)
            waiters.append(queue.addWaiter(for: Self.first, isLarge: isLarge) { _ in resumed.append(number) })
        }
        #expect(resume(queue, 32))
        #expect(resumed == [0, 1])
        #expect(resume(queue, 32))
        #expect(resumed == [0, 1])
        #expect(resume(queue, 32, isLongStep: true))
        #expect(resumed == [0, 1, 2])
        // One that has left needs no step.
        waiters[3].cancel()
        #expect(resume(queue, 32))
        #expect(!resume(queue, 32, isLongStep: true))
        #expect(resumed == [0, 1, 2, 4, 5])
    }

    @Test("a refusal removes the waiters of its scope; the next activation is for the first of the others")
    func refusal() {
        let queue = ActivationQueue()
        var resumed: [Int] = []
        var waiters: [ActivationWaiter] = []
        for (number, scopes) in [Self.first, Self.second, Self.first, Self.third, Self.second].enumerated() {
            waiters.append(queue.addWaiter(for: scopes, isLarge: false) { _ in resumed.append(number) })
        }
        #expect(queue.nextScopes == Self.first)
        let ofConnection = queue.removeWaiters(refusedBy: CallerRefusal(CallerGone(), of: .connection(1)))
        #expect(ofConnection.count == 2)
        #expect(queue.count == 3 && queue.nextScopes == Self.second)
        // Those that leave afterwards leave their present queue.
        waiters[2].cancel()
        waiters[1].cancel()
        #expect(ofConnection.count == 1 && queue.count == 2)
        #expect(queue.nextScopes == Self.third)
        let ada = PrincipalName("ada")
        let ofPrincipal = queue.removeWaiters(refusedBy: CallerRefusal(CallerGone(), of: .principal(ada)))
        #expect(ofPrincipal.count == 1 && queue.count == 1)
        #expect(!resume(ofConnection, 32) && !resume(ofPrincipal, 32))
        #expect(resumed == [0, 3])
        #expect(!resume(queue, 32))
        #expect(resumed == [0, 3, 4])
        #expect(queue.nextScopes == nil)
    }

    @Test("a refusal concerns the callers of its connection, principal, host or network")
    func scopes() throws {
        func scopes(_ connection: UInt64?, _ principal: String?, _ host: String?) -> QuotaScopes {
            QuotaScopes(
                connection: connection, principal: principal,
                host: host.flatMap { AddressKey(SocketAddress(host: $0, port: 0, isIPv6: $0.contains(":"))) })
        }
        let caller = scopes(1, "ada", "2001:db8:1:1::1")
        for scope in caller.all {
            let refusal = CallerRefusal(CallerGone(), of: scope)
            #expect(refusal.concerns(caller))
            #expect(!refusal.concerns(scopes(2, "bob", "192.0.2.1")))
            #expect(!refusal.concerns(scopes(2, nil, nil)))
            #expect(!refusal.concerns(nil))
        }
        let host = try #require(caller.host)
        let neighbor = scopes(2, nil, "2001:db8:1:2::1")
        #expect(CallerRefusal(CallerGone(), of: .network(host.network.number)).concerns(neighbor))
        #expect(!CallerRefusal(CallerGone(), of: .host(host.number)).concerns(neighbor))
        #expect(CallerRefusal(CallerGone(), of: .server).concerns(nil))
        #expect(CallerRefusal(CallerGone(), of: .server).concerns(.server))
        #expect(!CallerRefusal(CallerGone(), of: .server).concerns(caller))
        #expect(CallerRefusal.cause(of: CallerRefusal(CallerGone(), of: .server)) is CallerGone)
    }
}

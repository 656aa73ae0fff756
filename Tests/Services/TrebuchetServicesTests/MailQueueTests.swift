import Testing

@testable import TrebuchetServices

/// The order of mails; hosts from 1,000 on are in the network of their thousands.
@Suite struct MailQueueTests {
    private func queue(inFlight: Int, waiting: Int, perHost: Int = 8) -> MailQueue<Int> {
        var limits = AuthLimits()
        (limits.mailsInFlight, limits.waitingMails, limits.mailsInFlightPerHost) = (inFlight, waiting, perHost)
        return MailQueue(limits)
    }

    @Test("mails are handed over in turns by network, host and address, and else in their order")
    func turns() {
        var queue = queue(inFlight: 3, waiting: 100)
        let mails = [
            (1_001, "a"), (1_001, "b"), (1_002, "a"), (1_003, "c"), (2, "a"), (2, "a"), (2, "d"), (3, "e"),
        ]
        var numbers: [UInt64: Int] = [:]
        for (index, (host, address)) in mails.enumerated() { numbers[queue.add(address, from: host).number] = index }
        var order: [Int] = []
        var inFlight: [UInt64] = []
        while let next = queue.next() ?? (inFlight.isEmpty ? nil : 0) {
            if next == 0 {
                queue.remove(inFlight.removeFirst())
            } else {
                inFlight.append(next)
                order.append(numbers[next] ?? -1)
            }
        }
        #expect(order == [0, 6, 7, 1, 4, 3, 2, 5] && queue.isEmpty)
    }

    @Test("addresses are counted by their bytes")
    func addressBytes() {
        var queue = queue(inFlight: 2, waiting: 100)
        let numbers = ["\u{E9}", "e\u{301}", "x"].map { queue.add($0, from: 2).number }
        #expect(queue.next() == numbers[0] && queue.next() == numbers[1])
    }

    @Test("when too many wait, the newest of the network, host and address with the most is refused")
    func refused() {
        var queue = queue(inFlight: 1, waiting: 3)
        let first = queue.add("a", from: 1_001)
        #expect(first.refused == nil && queue.next() == first.number && queue.next() == nil)
        let waiting = [queue.add("a", from: 1_001), queue.add("b", from: 1_002), queue.add("c", from: 1_002)]
        #expect(waiting.allSatisfy { $0.refused == nil } && queue.waitingCount == 3)
        #expect(queue.add("d", from: 2).refused == waiting[2].number)
        let own = queue.add("e", from: 1_001)
        #expect(own.refused == own.number && queue.waitingCount == 3)
        queue.remove(waiting[0].number)
        #expect(queue.add("e", from: 1_001).refused == nil)
    }

    @Test("a host has its limit of mails in flight and waiting, and its network that of four hosts")
    func limits() throws {
        var queue = queue(inFlight: 1, waiting: 100, perHost: 2)
        func isFull(_ host: Int) -> Bool {
            do throws(AuthError) { try queue.check(host, isCounted: true) } catch {
                return error == .limitReached("mailsInFlightPerHost")
            }
            return false
        }
        for host in 1_001...1_004 {
            for _ in 0..<2 {
                #expect(!isFull(host))
                _ = queue.add("a", from: host)
                _ = queue.next()
            }
            #expect(isFull(host))
        }
        #expect(isFull(1_005) && !isFull(2_001) && !isFull(5))
        try queue.check(1_001, isCounted: false)
    }
}

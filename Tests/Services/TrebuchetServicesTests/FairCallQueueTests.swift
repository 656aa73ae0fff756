import Testing

@testable import TrebuchetServices

@Suite struct FairCallQueueTests {
    private func order(_ queue: inout FairCallQueue<Int>, _ hosts: [UInt64: Int]) -> [Int] {
        var order: [Int] = []
        while let next = queue.next() { order.append(hosts[next] ?? -1) }
        return order
    }

    @Test(
        "networks take turns, their hosts within them, and calls of a host keep their order",
        arguments: [
            // Hosts 1,000 to 1,999 are one network.
            ([7, 7, 7, 8], [7, 8, 7, 7]), ([7, 8, 9], [7, 8, 9]), ([], []),
            ([1_001, 1_002, 1_003, 7, 7], [1_001, 7, 1_002, 7, 1_003]),
            ([1_001, 1_001, 1_001, 1_002], [1_001, 1_002, 1_001, 1_001]),
        ])
    func turns(calls: [Int], expected: [Int]) {
        var queue = FairCallQueue<Int>(limit: 100)
        var hosts: [UInt64: Int] = [:]
        for host in calls { hosts[queue.add(from: host).number] = host }
        #expect(queue.count == calls.count)
        #expect(order(&queue, hosts) == expected)
        #expect(queue.count == 0 && queue.next() == nil)
    }

    @Test("a call of another host waits for one call of a flood, however long that is", arguments: [10, 1_000, 10_000])
    func flood(length: Int) {
        var queue = FairCallQueue<Int>(limit: 20_000)
        var numbers: [UInt64] = []
        for _ in 0..<length { numbers.append(queue.add(from: 1).number) }
        let honest = queue.add(from: 2).number
        #expect(queue.next() == numbers[0])
        #expect(queue.next() == honest)
        #expect(queue.next() == numbers[1])
    }

    @Test("at the limit, the newest call of the host with the most is refused")
    func limit() {
        var queue = FairCallQueue<Int>(limit: 3)
        var hosts: [UInt64: Int] = [:]
        func add(_ host: Int) -> UInt64? {
            let (number, refused) = queue.add(from: host)
            hosts[number] = host
            return refused
        }
        #expect([add(1), add(1), add(1)] == [nil, nil, nil])
        #expect(add(1) == 4, "the flood itself")
        #expect(add(2) == 3)
        #expect(add(3) == 2)
        // Each host has one call, so the newest is refused.
        #expect(add(4) == 7)
        #expect(queue.count == 3 && order(&queue, hosts) == [1, 2, 3])
    }

    @Test("with a limit of 0 each waiting call is refused")
    func none() {
        var queue = FairCallQueue<Int>(limit: 0)
        let (number, refused) = queue.add(from: 1)
        #expect(number == refused && queue.next() == nil && queue.count == 0)
    }
}

import Testing

@testable import Relays

struct EventQueueTests {
    /// Offers 1, 2, … to a queue of three and reads it empty.
    @Test(
        "a full queue follows its policy",
        arguments: [
            (EventOverflowPolicy.dropOldest, 2, "1 2 wait", 0),
            (.dropOldest, 5, "3 4 5 wait", 2),
            (.dropNewest, 5, "1 2 3 wait", 2),
            (.fail, 3, "1 2 3 wait", 0),
            (.fail, 4, "1 2 3 overflow end", 1),
            (.fail, 9, "1 2 3 overflow end", 1),
        ] as [(EventOverflowPolicy, Int, String, UInt64)])
    func policies(policy: EventOverflowPolicy, offered: Int, read: String, dropped: UInt64) {
        var queue = EventQueue<Int>(limit: 3, policy: policy)
        for event in 1...offered { _ = queue.offer(event) }
        #expect(drain(&queue) == read)
        #expect(queue.droppedCount == dropped)
    }

    @Test("a finished queue is read to its end and accepts no more events")
    func finishing() {
        var queue = EventQueue<Int>(limit: 3, policy: .fail)
        _ = queue.offer(1)
        queue.finish()
        guard case .ignored = queue.offer(2) else {
            Issue.record("a finished queue accepted an event")
            return
        }
        #expect(drain(&queue) == "1 end")
        #expect(drain(&queue) == "end")
    }

    @Test("order is kept while the ring wraps around and grows", arguments: [1, 2, 3, 4, 5, 7, 64, 100])
    func ring(limit: Int) {
        var queue = EventQueue<Int>(limit: limit, policy: .fail)
        var sent = 0
        var expected = 0
        for round in 0..<300 {
            for _ in 0..<(round % limit + 1) where queue.count < limit {
                _ = queue.offer(sent)
                sent += 1
            }
            for _ in 0..<(round % 5 + 1) {
                guard case .event(let event) = queue.step() else { continue }
                #expect(event == expected)
                expected += 1
            }
        }
        #expect(expected > limit)
        #expect(sent - expected == queue.count)
        #expect(queue.droppedCount == 0)
    }

    private func drain(_ queue: inout EventQueue<Int>) -> String {
        var words: [String] = []
        while true {
            switch queue.step() {
            case .event(let event):
                words.append("\(event)")
                continue
            case .overflow(let error):
                #expect(error.bufferLimit == queue.limit)
                words.append("overflow")
                continue
            case .end: words.append("end")
            case nil: words.append("wait")
            }
            return words.joined(separator: " ")
        }
    }
}

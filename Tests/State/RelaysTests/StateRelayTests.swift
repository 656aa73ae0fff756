import Relays
import TestSupport
import Testing

struct StateRelayTests {
    @Test("a new reader gets the current value first")
    func currentFirst() async {
        let relay = StateRelay(1)
        relay.update(2)
        var reader = relay.stream.makeAsyncIterator()
        #expect(await reader.next() == 2)
    }

    @Test("a reader at the writer's pace sees every value in order")
    func keepingUp() async {
        let relay = StateRelay(0)
        var reader = relay.stream.makeAsyncIterator()
        for value in 1...100 {
            #expect(await reader.next() == value - 1)
            relay.update(value)
        }
        #expect(await reader.next() == 100)
    }

    @Test("a slow reader skips to the newest value")
    func skipping() async {
        let relay = StateRelay(0)
        var reader = relay.stream.makeAsyncIterator()
        #expect(await reader.next() == 0)
        for value in 1...1_000 { relay.update(value) }
        #expect(await reader.next() == 1_000)
    }

    @Test("a waiting reader is woken by an update")
    func waking() async {
        let relay = StateRelay("old")
        let reader = Task {
            var seen: [String] = []
            for await value in relay.stream.prefix(2) { seen.append(value) }
            return seen
        }
        #expect(await eventually { relay.waitingReaderCount == 1 }, "the reader waits")
        relay.update("new")
        #expect(await reader.value == ["old", "new"])
    }

    @Test("an update in place returns the result of the change")
    func updateInPlace() {
        let relay = StateRelay(["a"])
        let count = relay.update { list in
            list.append("b")
            return list.count
        }
        #expect(count == 2)
        #expect(relay.currentValue == ["a", "b"])
    }

    @Test("an update in place that throws rethrows the error and wakes the readers")
    func throwingUpdate() async {
        let relay = StateRelay(0)
        let reader = Task { await relay.stream.first { $0 == 1 } }
        #expect(await eventually { relay.waitingReaderCount == 1 }, "the reader waits")
        #expect(throws: Refusal.self) {
            try relay.update { value throws(Refusal) in
                value = 1
                throw Refusal()
            }
        }
        #expect(await reader.value == 1)
    }

    @Test("a reader sees the last value before the end")
    func finishing() async {
        let relay = StateRelay(1)
        var reader = relay.stream.makeAsyncIterator()
        #expect(await reader.next() == 1)
        relay.update(2)
        relay.finish()
        relay.update(3)
        #expect(await reader.next() == 2)
        #expect(await reader.next() == nil)
        #expect(await reader.next() == nil)
        #expect(relay.currentValue == 2)
    }

    @Test("waiting readers end when the relay is finished")
    func finishWakes() async {
        let relay = StateRelay(1)
        let reader = Task {
            var seen: [Int] = []
            for await value in relay.stream { seen.append(value) }
            return seen
        }
        #expect(await eventually { relay.waitingReaderCount == 1 }, "the reader waits")
        relay.finish()
        #expect(await reader.value == [1])
    }

    @Test("a reader that starts after the end gets the last value and the end")
    func lateReader() async {
        let relay = StateRelay(1)
        relay.finish()
        var seen: [Int] = []
        for await value in relay.stream { seen.append(value) }
        #expect(seen == [1])
    }

    @Test("an actor's reader stays on the actor", .timeLimit(.minutes(5)))
    func isolatedReader() async {
        let relay = StateRelay(0)
        let owner = Owner()
        let reader = Task { await owner.sum(of: relay, through: 3) }
        for value in 1...3 {
            #expect(await eventually { relay.waitingReaderCount == 1 }, "the reader has caught up")
            relay.update(value)
        }
        #expect(await reader.value == 6)
    }

    private actor Owner {
        private var total = 0

        func sum(of relay: StateRelay<Int>, through last: Int) async -> Int {
            for await value in relay.stream {
                total += value
                if value == last { break }
            }
            return total
        }
    }

    @Test("the version grows with each change, and the stream after a version has the newer values")
    func version() async {
        let relay = StateRelay("a")
        #expect(relay.version == 1)
        relay.update("b")
        relay.update { $0 += "c" }
        let (value, version) = relay.current
        #expect(value == "bc")
        #expect(version == 3)
        var reader = relay.stream(after: version).makeAsyncIterator()
        #expect(reader.version == 3)
        relay.update("d")
        #expect(await reader.next() == "d")
        #expect(reader.version == 4)
        relay.finish()
        relay.update("e")
        #expect(relay.version == 4)
        #expect(await reader.next() == nil)
    }
}

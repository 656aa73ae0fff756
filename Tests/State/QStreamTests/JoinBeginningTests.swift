import QStream
import TestSupport
import Testing

/// The first value of a diamond that is built while its source sends: a consistent one.
@Suite(.timeLimit(.minutes(5))) struct JoinBeginningTests {
    /// A source during a send: it has updated one branch, and not yet the other.
    private struct PartialSend {
        let source = Subject(value: 1)
        let latch = Latch()
        let tens: Streams.Derived<Int>
        let hundreds: Streams.Derived<Int>
        private let subscription: AnySubscription

        /// - Parameter between: runs with the value after the first branch and before the second.
        init(between: @escaping @Sendable (Streams.Derived<Int>, Subject<Int>) async -> Void = { _, _ in }) async {
            tens = await source.map { $0 * 10 }
            subscription = await source.subscribe { [tens, source, latch] _ in
                await between(tens, source)
                await latch.wait()
            }
            hundreds = await source.map { $0 * 100 }
        }

        /// Sends 2; returns between the branches.
        func send() async -> Task<Void, Never> {
            let sending = Task { [source] in await source.set(2) }
            #expect(await eventually { await latch.arrivals == 1 }, "the value has passed the first branch")
            return sending
        }
    }

    /// Builds a diamond during a send, and returns its output up to the end of the send.
    private func beginning<A: Stream<Int>, B: Stream<Int>>(
        _ halfWay: PartialSend, _ sending: Task<Void, Never>, _ a: A, _ b: B
    ) async -> [String] {
        let log = Log<String>()
        let inlets = b.outlet.inletCount
        let building = Task { await a.combineLatest(b).tap { log.record("\($0)/\($1)") } }
        #expect(await eventually { b.outlet.inletCount > inlets }, "the diamond is attached to both branches")
        await halfWay.latch.open()
        await sending.value
        let subscription = await building.value
        await halfWay.source.set(3)
        withExtendedLifetime(subscription) {}
        return log.values
    }

    @Test("a diamond built during a send starts when the value has passed all branches")
    func whole() async {
        for isReversed in [false, true] {
            let halfWay = await PartialSend()
            let sending = await halfWay.send()
            let (a, b) = isReversed ? (halfWay.hundreds, halfWay.tens) : (halfWay.tens, halfWay.hundreds)
            let log = await beginning(halfWay, sending, a, b)
            #expect(log == (isReversed ? ["200/20", "300/30"] : ["20/200", "30/300"]))
        }
    }

    @Test("a diamond of operators that were built during the send starts after it, too")
    func lateOperators() async {
        let halfWay = await PartialSend()
        let sending = await halfWay.send()
        let late = await halfWay.source.map { $0 * 10 }.filter { _ in true }
        #expect(await late.currentValue() == 20)
        #expect(await beginning(halfWay, sending, late, halfWay.hundreds) == ["20/200", "30/300"])
    }

    @Test("a diamond below other joins, which another source has updated meanwhile, starts after it, too")
    func belowJoins() async {
        let halfWay = await PartialSend()
        let other = Subject(value: 1)
        let upper = await halfWay.tens.combineLatest(other).map { $0 + $1 }
        let sending = await halfWay.send()
        await other.set(2)
        #expect(await beginning(halfWay, sending, upper, halfWay.hundreds) == ["22/200", "32/300"])
    }

    @Test("a diamond of a collection, or of the same stream twice, starts after it, too")
    func collection() async {
        let halfWay = await PartialSend()
        let sending = await halfWay.send()
        let building = Task { await [halfWay.tens, halfWay.hundreds, halfWay.tens].combineLatest() }
        #expect(await eventually { halfWay.tens.outlet.inletCount == 2 }, "all joins are attached")
        await halfWay.latch.open()
        await sending.value
        #expect(await building.value.currentValue() == [20, 200, 20])
    }

    @Test("a join that is not a diamond starts at once, whatever is being sent")
    func noDiamond() async {
        let halfWay = await PartialSend()
        let sending = await halfWay.send()
        let pair = await halfWay.tens.combineLatest(Subject(value: 7))
        #expect(await pair.currentValue()! == (20, 7))
        await halfWay.latch.open()
        await sending.value
    }

    @Test("a cancelled builder of a diamond does not wait, and the diamond starts nevertheless")
    func cancelled() async {
        let halfWay = await PartialSend()
        let sending = await halfWay.send()
        let building = Task { await halfWay.tens.combineLatest(halfWay.hundreds) }
        building.cancel()
        let diamond = await building.value
        #expect(await diamond.currentValue() == nil)
        await halfWay.latch.open()
        await sending.value
        #expect(await diamond.currentValue()! == (20, 200))
    }

    @Test("a subscriber of the source that builds a diamond waits neither for itself nor for its child task")
    func insideOut() async {
        for inChild in [false, true] {
            let log = Log<String>()
            let subscriptions = Log<AnySubscription>()
            let halfWay = await PartialSend { tens, source in
                @Sendable func build() async {
                    subscriptions.record(await tens.combineLatest(source.map { $0 }).tap { log.record("\($0)/\($1)") })
                }
                if inChild { await withTaskGroup { $0.addTask { await build() } } } else { await build() }
            }
            await halfWay.latch.open()
            await halfWay.source.set(2)
            #expect(log.values == ["20/2"])
        }
    }

    @Test("diamonds built while other tasks send are consistent from their first combination on")
    func stress() async {
        let (source, other) = (Subject(value: 0), Subject(value: 0))
        let upper = await source.combineLatest(other).map { $0.0 }
        let slow = await source.map { value in
            await Task.yield()
            return value
        }
        let torn = Log<String>()
        await withTaskGroup { group in
            let senders = [source, other].map { subject in
                Task {
                    while !Task.isCancelled {
                        await subject.mutate { $0 += 1 }
                        // Without contention the task would keep its thread.
                        await Task.yield()
                    }
                }
            }
            for builder in 0..<4 {
                group.addTask {
                    for round in 0..<250 {
                        let late = await source.map { $0 }
                        let branches = [source.any(), upper.any(), slow.any(), late.any()]
                        let (a, b) = (branches[(builder + round) % 4], branches[(builder + round / 4 + 1) % 4])
                        let count = Log<Void>()
                        let subscription = await a.combineLatest(b).tap { a, b in
                            if a != b { torn.record("\(a) \(b), as number \(count.values.count)") }
                            count.record(())
                        }
                        #expect(!count.values.isEmpty)
                        for _ in 0..<round % 8 { await Task.yield() }
                        subscription.cancel()
                    }
                }
            }
            await group.waitForAll()
            for sender in senders { sender.cancel() }
            for sender in senders { await sender.value }
        }
        #expect(torn.values.isEmpty, "\(torn.values.count) inconsistent, such as \(torn.values.prefix(3))")
    }
}

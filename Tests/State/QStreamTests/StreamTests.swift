import QStream
import TestSupport
import Testing

/// The guarantees of every stream: order, the current value, delivery.
@Suite(.timeLimit(.minutes(5))) struct StreamTests {
    @Test("tap gives the current value and then the others, in order")
    func tap() async {
        let subject = Subject(value: "initial")
        let log = Log<String>()
        let subscription = await subject.tap { log.record($0) }
        await subject.set("Test")
        #expect(log.values == ["initial", "Test"])
        withExtendedLifetime(subscription) {}
    }

    @Test("subscribe gives only later values")
    func subscribe() async {
        let subject = Subject(value: 1)
        let log = Log<Int>()
        let subscription = await subject.map { $0 * 10 }.subscribe { log.record($0) }
        await subject.set(2)
        #expect(log.values == [20])
        withExtendedLifetime(subscription) {}
    }

    @Test("each of two taps on an erased, mapped stream gets the current value")
    func twoTaps() async {
        let log = Log<String>()
        let mapped = await Subject(value: 1).map { $0 + 1 }.any()
        let first = await mapped.tap { log.record("first \($0)") }
        let second = await mapped.tap { log.record("second \($0)") }
        #expect(log.values == ["first 2", "second 2"])
        withExtendedLifetime((first, second)) {}
    }

    @Test("a relay's values leave map in order")
    func relayOrder() async {
        let relay = Relay<Int>()
        let log = Log<Int>()
        let subscription = await relay.map { $0 * 2 }.tap { log.record($0) }
        for number in 0...10 { await relay.send(number) }
        #expect(log.values == (0...10).map { $0 * 2 })
        withExtendedLifetime(subscription) {}
    }

    @Test("set returns when all subscribers are done, and they are called in the order of subscription")
    func setWaits() async {
        let subject = Subject(value: 0)
        let log = Log<String>()
        let first = await subject.subscribe { value in
            for _ in 0..<10 { await Task.yield() }
            log.record("first \(value)")
        }
        let second = await subject.subscribe { log.record("second \($0)") }
        await subject.set(1)
        log.record("set")
        #expect(log.values == ["first 1", "second 1", "set"])
        withExtendedLifetime((first, second)) {}
    }

    @Test("every operator of a chain has a current value")
    func currentValues() async {
        let subject = Subject(value: 3)
        let doubled = await subject.map { $0 * 2 }
        let even = await doubled.filter { $0.isMultiple(of: 4) }
        let sum = await doubled.scan(0) { $0 + $1 }
        let both = await doubled.combineLatest(sum).map { $0 + $1 }
        #expect(await doubled.currentValue() == 6)
        #expect(await even.currentValue() == nil)
        #expect(await sum.currentValue() == 6)
        #expect(await both.currentValue() == 12)
        await subject.set(4)
        #expect(await even.currentValue() == 8)
        #expect(await sum.currentValue() == 14)
        #expect(await both.currentValue() == 22)
        #expect(await Relay<Int>().currentValue() == nil)
    }

    @Test("values set by many concurrent tasks arrive everywhere one after another, in the same order")
    func concurrentSets() async {
        let subject = Subject(value: 0)
        let (plain, mapped) = (Log<Int>(), Log<Int>())
        let first = await subject.subscribe { plain.record($0) }
        let second = await subject.map { value in
            await Task.yield()
            return value
        }
        .subscribe { mapped.record($0) }
        await (1...400).map { $0 }.forEachConcurrent { await subject.set($0) }
        #expect(plain.values.sorted() == Array(1...400))
        #expect(plain.values == mapped.values)
        #expect(await subject.value == plain.values.last)
        withExtendedLifetime((first, second)) {}
    }

    @Test("mutate is one step, whatever other tasks mutate")
    func mutate() async throws {
        struct Refusal: Error {}
        let subject = Subject(value: 0)
        let log = Log<Int>()
        let subscription = await subject.subscribe { log.record($0) }
        await (0..<200).forEachConcurrent { _ in await subject.mutate { $0 += 1 } }
        #expect(await subject.value == 200)
        #expect(log.values == Array(1...200))
        #expect(
            await subject.mutate { value in
                value -= 1; return "\(value)"
            } == "199")
        await #expect(throws: Refusal.self) {
            try await subject.mutate { value throws(Refusal) in
                value = 7
                throw Refusal()
            }
        }
        #expect(await subject.value == 199)
        withExtendedLifetime(subscription) {}
    }

    @Test("an optional subject starts with nil, and reports its release")
    func optionalSubject() async {
        let log = Log<String>()
        var subject: Subject<Int?>? = Subject<Int?>(value: nil) { log.record("freed") }
        #expect(await subject?.value == .some(nil))
        #expect(await Subject<Int?>().value == nil)
        subject = nil
        #expect(log.values == ["freed"])
    }

    @Test("bind sets the other subject, with the current value first, while it is retained")
    func bind() async {
        let source = Subject(value: 1)
        let (target, relay, sync) = (Subject(value: 0), Relay<Int>(), SyncContinuationSubject(value: 0))
        let log = Log<Int>()
        let logging = await relay.subscribe { log.record($0) }
        var subscriptions: [AnySubscription] = []
        await source.bind(to: target).store(in: &subscriptions)
        await source.bind(to: relay).store(in: &subscriptions)
        await source.bind(to: sync).store(in: &subscriptions)
        #expect(await target.value == 1)
        await source.set(2)
        #expect(await target.value == 2)
        #expect(log.values == [1, 2])
        #expect(await sync.waitFor { $0 == 2 } == 2)
        subscriptions = []
        await source.set(3)
        #expect(await target.value == 2)
        withExtendedLifetime(logging) {}
    }

    @Test("values pushed from synchronous code arrive in order")
    func syncContinuation() async {
        let subject = SyncContinuationSubject(value: 0)
        let log = Log<Int>()
        let subscription = await subject.tap { log.record($0) }
        for number in 1...100 { subject.continuation.yield(number) }
        _ = await subject.waitFor { $0 == 100 }
        #expect(log.values == Array(0...100))
        withExtendedLifetime(subscription) {}
    }

    @Test("dispatch lets the sender continue, and keeps the order and the buffer's bound")
    func dispatch() async {
        let relay = Relay<Int>()
        let (log, newest) = (Log<Int>(), Log<Int>())
        let latch = Latch()
        let all = await relay.dispatch().tap { value in
            await latch.wait()
            log.record(value)
        }
        let few = await relay.dispatch(bufferingPolicy: .bufferingNewest(1)).tap { value in
            await latch.wait()
            newest.record(value)
        }
        await relay.send(1)
        #expect(await eventually { await latch.arrivals == 2 }, "both subscribers process the first value")
        for number in 2...5 { await relay.send(number) }
        await latch.open()
        #expect(await eventually { log.values.count == 5 && newest.values.count == 2 }, "all have arrived")
        #expect(log.values == [1, 2, 3, 4, 5])
        #expect(newest.values == [1, 5])
        withExtendedLifetime((all, few)) {}
    }

    @Test("a newer value cancels the task of the previous one")
    func task() async {
        let subject = Subject(value: 1)
        let log = Log<String>()
        let subscription = await subject.task { value in
            let gate = AsyncBinarySemaphore(value: false)
            do { try await gate.waitCancelable() } catch { log.record("cancelled \(value)") }
        }
        await subject.set(2)
        #expect(await eventually { log.values == ["cancelled 1"] }, "the first is cancelled")
        subscription.cancel()
        #expect(await eventually { log.values == ["cancelled 1", "cancelled 2"] }, "the second is cancelled")
    }

    @Test("constants and futures are streams, too")
    func constants() async {
        #expect(await Streams.Constant(5).map { $0 + 1 }.currentValue() == 6)
        func tripled(_ stream: some ValueStream<Int>) async -> Int? { await stream.map { $0 * 3 }.currentValue() }
        #expect(await tripled(.constant(2)) == 6)
        let latch = Latch()
        let future = Future {
            await latch.wait()
            return 7
        }
        let stream = future.stream()
        #expect(await stream.currentValue() == .some(nil))
        await latch.open()
        #expect(await stream.waitFor { $0 != nil } == 7)
    }
}

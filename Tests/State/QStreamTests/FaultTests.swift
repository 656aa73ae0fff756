@testable import QStream
import Relays
import TestSupport
import Testing

/// Typical faults of push-based designs; the number is only for reference.
@Suite(.timeLimit(.minutes(5))) struct FaultTests {
    #if DEBUG
        @Test("1: a subscriber that sets its own subject stops a debug build with a report")
        func selfDeadlockTraps() async {
            let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                let subject = Subject(value: 0)
                let subscription = await subject.subscribe { await subject.set($0 + 1) }
                await subject.set(1)
                withExtendedLifetime(subscription) {}
            }
            let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
            #expect(text.contains("deadlock: a task that still delivers a value sets the Subject"))
        }

        @Test("1: a subscriber that sets its subject during its first value, or indirectly, stops a debug build too")
        func otherSelfDeadlocksTrap() async {
            await #expect(processExitsWith: .failure) {
                let subject = Subject(value: 0)
                _ = await subject.tap { await subject.set($0 + 1) }
            }
            await #expect(processExitsWith: .failure) {
                let (a, b) = (Subject(value: 0), Subject(value: 0))
                let there = await a.subscribe { await b.set($0) }
                let back = await b.map { $0 + 1 }.subscribe { await a.set($0) }
                await a.set(1)
                withExtendedLifetime((there, back)) {}
            }
            await #expect(processExitsWith: .failure) {
                let lock = AsyncBinarySemaphore()
                await lock.withLock { await lock.withLock {} }
            }
        }
    #endif

    @Test("1: where the program is not stopped, the value is queued and nothing hangs")
    func selfDeadlockQueues() async {
        await Deadlock.$policy.withValue(.queue) {
            let subject = Subject(value: 0)
            let log = Log<Int>()
            let subscription = await subject.tap { value in
                log.record(value)
                if value < 3 { await subject.set(value + 1) }
            }
            #expect(await eventually { log.values == [0, 1, 2, 3] }, "the feedback has ended")
            #expect(await subject.value == 3)
            withExtendedLifetime(subscription) {}

            let joined = Log<String>()
            let (a, b) = (Subject(value: 0), Subject(value: 0))
            let feedback = await a.combineLatest(b).subscribe { left, right in
                joined.record("\(left)\(right)")
                if right < left { await b.set(left) }
            }
            await a.set(1)
            #expect(await eventually { joined.values == ["10", "11"] }, "the join has fired again")
            withExtendedLifetime(feedback) {}
        }
    }

    @Test("2: debounce delivers values that arrive while its subscriber is busy")
    func debounceLoss() {
        let stage = Stage()
        let subject = Relay<Int>()
        let log = Log<Int>()
        stage.perform {
            stage.keep(
                await subject.debounce(for: .seconds(1), clock: stage.clock).subscribe { value in
                    log.record(value)
                    try? await stage.clock.sleep(for: .seconds(5))
                })
            await subject.send(1)
        }
        stage.advance(ticks: 2)
        stage.perform { await subject.send(2) }
        stage.advance(ticks: 10)
        #expect(log.values == [1, 2])
    }

    @Test("3: throttle delivers values that arrive while its subscriber is busy with the end of an interval")
    func throttleLoss() {
        let stage = Stage()
        let relay = Relay<Int>()
        let log = Log<Int>()
        stage.perform {
            stage.keep(
                await relay.throttle(for: .seconds(1), clock: stage.clock).subscribe { value in
                    log.record(value)
                    if value == 2 { try? await stage.clock.sleep(for: .seconds(5)) }
                })
            await relay.send(1)
            await relay.send(2)
        }
        stage.advance(ticks: 2)
        #expect(log.values == [1, 2])
        stage.perform { await relay.send(3) }
        stage.advance(ticks: 10)
        #expect(log.values == [1, 2, 3])
    }

    @Test("4: a tap between two sets sees the first value and then the second")
    func tapBetweenSets() {
        let stage = Stage()
        let subject = Subject(value: 0)
        let log = Log<Int>()
        stage.perform {
            stage.keep(
                await subject.subscribe { _ in
                    try? await stage.clock.sleep(for: .seconds(1))
                })
        }
        stage.perform { await subject.set(1) }
        stage.perform { stage.keep(await subject.tap { log.record($0) }) }
        stage.perform { await subject.set(2) }
        stage.advance(ticks: 5)
        #expect(log.values == [1, 2])
    }

    @Test("5: a value whose delivery has started does not reach a new subscriber")
    func subscribeDuringSend() {
        let stage = Stage()
        let relay = Relay<Int>()
        let log = Log<Int>()
        stage.perform {
            stage.keep(
                await relay.subscribe { _ in
                    try? await stage.clock.sleep(for: .seconds(1))
                })
        }
        stage.perform { await relay.send(1) }
        stage.perform { stage.keep(await relay.subscribe { log.record($0) }) }
        stage.perform { await relay.send(2) }
        stage.advance(ticks: 5)
        #expect(log.values == [2])
    }

    @Test("6: combineLatest of two branches of one source has no glitch")
    func glitch() async {
        let source = Subject(value: 1)
        let log = Log<String>()
        let subscription = await source.map { $0 * 10 }.combineLatest(await source.map { $0 * 100 })
            .tap { log.record("\($0)/\($1)") }
        await source.set(2)
        #expect(log.values == ["10/100", "20/200"])
        withExtendedLifetime(subscription) {}
    }

    @Test("7: get on a silent stream can be cancelled and leaves nothing behind")
    func getCancelled() async {
        let relay = Relay<Int>()
        let plain = Task { await relay.get() }
        let throwing = Task { try await relay.getCancelable() }
        let waiting = Task { await relay.waitFor { $0 > 0 } }
        let next = Task { await relay.getNext() }
        #expect(await eventually { relay.outlet.inletCount == 4 }, "all wait")
        for task in [plain, waiting, next] { task.cancel() }
        throwing.cancel()
        #expect(await plain.value == nil)
        #expect(await waiting.value == nil)
        #expect(await next.value == nil)
        await #expect(throws: CancellationError.self) { try await throwing.value }
        #expect(relay.outlet.inletCount == 0)
    }

    @Test("8: of concurrent sets the last one delivered is the current value, and none is lost")
    func concurrentSets() async {
        for _ in 0..<300 {
            let subject = Subject(value: 0)
            let log = Log<Int>()
            let subscription = await subject.subscribe { log.record($0) }
            await (1...8).map { $0 }.forEachConcurrent { await subject.set($0) }
            #expect(log.values.sorted() == Array(1...8))
            #expect(await subject.value == log.values.last)
            withExtendedLifetime(subscription) {}
        }
    }

    @Test("9: twenty thousand dropped subscriptions leave nothing in the stream, without a send")
    func droppedSubscriptions() async {
        let subject = Subject(value: 0)
        var subscriptions: [AnySubscription] = []
        for _ in 0..<20_000 { subscriptions.append(await subject.subscribe { _ in }) }
        #expect(subject.outlet.inletCount == 20_000)
        subscriptions = []
        #expect(subject.outlet.inletCount == 0)
    }

    @Test("10: a child task enters the reentrant lock that its parent holds")
    func reentrantChild() async {
        let lock = AsyncBinarySemaphore(allowTaskReentrancy: true)
        let log = Log<String>()
        await lock.withLock {
            async let first: Void = lock.withLock { log.record("child") }
            async let second: Void = lock.withLock { log.record("child") }
            _ = await (first, second)
            log.record("parent")
        }
        #expect(log.values == ["child", "child", "parent"])
    }

    @Test("11: a consumer that leaves a pipe blocks no sender")
    func pipeLeft() async {
        let relay = Relay<Int>()
        let pipe = await relay.asyncPipe()
        let sender = Task { for number in 0..<10 { await relay.send(number) } }
        var seen: [Int] = []
        for await value in pipe {
            seen.append(value)
            if value == 2 { break }
        }
        await sender.value
        #expect(seen == [0, 1, 2])
        withExtendedLifetime(pipe) {}
    }

    @Test("12: map is not stale when its upstream changes during its first transformation")
    func staleMap() async {
        let subject = Subject(value: 1)
        let latch = Latch()
        let building = Task {
            await subject.map { value in
                if value == 1 { await latch.wait() }
                return value
            }
        }
        #expect(await eventually { await latch.arrivals == 1 }, "map transforms the current value")
        let setting = Task { await subject.set(2) }
        #expect(await eventually { await subject.value == 2 }, "the upstream has changed")
        await latch.open()
        let mapped = await building.value
        await setting.value
        #expect(await mapped.currentValue() == 2)
    }

    @Test("13: a timer does not repeat the ticks that a slow subscriber missed")
    func timerBurst() {
        let stage = Stage()
        let log = Log<Duration>()
        stage.perform {
            let timer = await Streams.Timer(interval: .milliseconds(50), clock: stage.clock)
            stage.keep(
                await timer.subscribe {
                    log.record(stage.clock.now.offset)
                    guard log.values.count == 1 else { return }
                    try? await stage.clock.sleep(for: .milliseconds(290))
                })
        }
        stage.advance(ticks: 0.46)
        #expect(log.values == [50, 350, 400, 450].map { .milliseconds($0) })
    }

    @Test("14: a subscriber behind dispatch may send to its own upstream")
    func dispatchFeedback() async {
        let subject = Subject(value: 0)
        let log = Log<Int>()
        let subscription = await subject.dispatch().tap { value in
            log.record(value)
            if value < 3 { await subject.set(value + 1) }
        }
        await subject.set(0)
        #expect(await eventually { log.values.last == 3 }, "the feedback has ended")
        withExtendedLifetime(subscription) {}
    }
}

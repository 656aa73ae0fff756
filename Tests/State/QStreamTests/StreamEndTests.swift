import Relays
import Synchronization
import TestSupport
import Testing

@testable import QStream

/// Streams at their ends and limits.
@Suite(.timeLimit(.minutes(5))) struct StreamEndTests {
    @Test("where a deadlock is queued, two changes in place are both applied")
    func mutatedTwice() async {
        await Deadlock.$policy.withValue(.queue) {
            let subject = Subject(value: 0)
            let subscription = await subject.subscribe { value in
                guard value == 1 else { return }
                await subject.mutate { $0 += 10 }
                await subject.mutate { $0 += 10 }
            }
            await subject.set(1)
            _ = await eventually { await subject.value == 21 }
            #expect(await subject.value == 21)
            withExtendedLifetime(subscription) {}
        }
    }

    @Test("a task of a cancelled subscription ends")
    func taskOutlives() async {
        var all: [Counter] = []
        for _ in 0..<20_000 {
            let (subject, running) = (Subject(value: 0), Counter())
            let subscription = await subject.task { _ in
                running.add(1)
                let (stream, _) = AsyncStream.makeStream(of: Never.self)
                for await _ in stream {}
                running.add(-1)
            }
            async let sent: Void = subject.set(1)
            async let cancelled: Void = { subscription.cancel() }()
            _ = await (sent, cancelled)
            all.append(running)
        }
        let haveEnded = await eventually { all.allSatisfy { $0.value == 0 } }
        #expect(haveEnded)
    }

    @Test("a value that a cancelled task sets arrives")
    func setCancelled() async {
        let subject = Subject(value: 0)
        let (a, b) = (await subject.map { $0 + 1 }, await subject.map { $0 + 2 })
        let both = await a.combineLatest(b)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            await subject.set(5)
        }
        await task.value
        let value = await both.currentValue()
        #expect(value?.0 == 6 && value?.1 == 7)
    }

    @Test("a long chain can be built, used, moved below a deeper stream, and released")
    func longChain() async {
        await #expect(processExitsWith: .success) {
            let subject = Subject(value: 0)
            let heads = Subject(value: subject.any())
            var stream = await heads.switchToLatest().any()
            for _ in 0..<20_000 { stream = await stream.map { $0 + 1 }.any() }
            await subject.set(1)
            guard await stream.currentValue() == 20_001 else { fatalError("the value did not come through") }
            let deeper = await subject.combineLatest(subject).map { $0 + $1 }.any()
            await heads.set(deeper)
            guard await stream.currentValue() == 20_002 else { fatalError("the other value did not come through") }
            let subscription = await stream.subscribe { _ in }
            stream = subject.any()
            subscription.cancel()
        }
    }

    @Test("a chain with two owners is released by the last of them")
    func sharedChain() async {
        let (subject, freed) = (OperatorState<Subject<Int>?>(nil), Counter())
        subject.exchange(Subject(value: 0) { freed.add(1) })
        var head = await subject.value?.map { $0 }
        subject.exchange(nil)
        let first = await head?.map { $0 }.subscribe { _ in }
        let second = await head?.map { $0 }.any().subscribe { _ in }
        head = nil
        first?.cancel()
        #expect(freed.value == 0)
        second?.cancel()
        #expect(freed.value == 1)
    }

    @Test("intervals of the maximum length are awaited")
    func longIntervals() async {
        await #expect(processExitsWith: .success) {
            for interval in [Duration.seconds(1 << 40)] {
                let subject = Subject(value: 0)
                let debounced = await subject.debounce(for: interval)
                let throttled = await subject.throttle(for: interval)
                let pulsed = await subject.pulse(ofLength: interval)
                await subject.set(1)
                await subject.set(2)
                for _ in 0..<1000 { await Task.yield() }
                let seen = (await debounced.currentValue(), await throttled.currentValue(), await pulsed.currentValue())
                guard seen.0 == 0, seen.1 == 1, seen.2 == 2 else { fatalError("\(seen)") }
            }
        }
        await #expect(processExitsWith: .success) {
            let subject = Subject<Int?>(value: nil).any()
            let value = try await withTimeout(.seconds(1 << 40)) {
                for _ in 0..<1000 { await Task.yield() }
                return await subject.get()
            }
            guard value == .some(.none) else { fatalError() }
        }
    }

    @Test("a merge of a stream with itself, and a join of one that sends while it is built, reach the newest value")
    func merges() async {
        let subject = Subject(value: 0)
        let merged = await subject.merge(subject)
        let log = OperatorState<[Int]>([])
        let tap = await merged.tap { value in log.withLock { $0.append(value) } }
        await subject.set(1)
        #expect(log.value == [0, 1, 1])
        withExtendedLifetime(tap) {}
    }

    @Test("a subscriber may wait for its task that sets another input of the join")
    func childSets() async {
        let (a, b) = (Subject(value: 0), Subject(value: 0))
        let both = await a.combineLatest(b)
        let log = OperatorState<[String]>([])
        let tap = await both.tap { left, right in
            log.withLock { $0.append("\(left)\(right)") }
        }
        let feedback = await a.subscribe { value in await Task { await b.set(value) }.value }
        await a.set(1)
        #expect(log.value.last == "11")
        withExtendedLifetime((tap, feedback)) {}
    }

    @Test("a released mapToFuture does not start its work", arguments: [0])
    func futureOutlives(_: Int) async {
        var all: [Counter] = []
        for _ in 0..<10_000 {
            let (subject, running) = (Subject(value: 0), Counter())
            let derived = OperatorState<Streams.Derived<Int?>?>(nil)
            derived.exchange(
                await subject.mapToFuture { value -> Int? in
                    if value == 0 { return 0 }
                    running.add(1)
                    let (stream, _) = AsyncStream.makeStream(of: Never.self)
                    for await _ in stream {}
                    running.add(-1)
                    return value
                })
            async let sent: Void = subject.set(1)
            async let released: Void = { _ = derived.exchange(nil) }()
            _ = await (sent, released)
            all.append(running)
        }
        let haveEnded = await eventually { all.allSatisfy { $0.value == 0 } }
        #expect(haveEnded)
    }

    @Test("a cancelled waiter of a reentrant lock does not block the others")
    func reentrantLock() async {
        let lock = AsyncBinarySemaphore(allowTaskReentrancy: true)
        for _ in 0..<500 {
            let count = Counter()
            let outer = Task {
                await lock.withLock {
                    await withTaskGroup(of: Void.self) { group in
                        for _ in 0..<4 {
                            group.addTask { try? await lock.withLockCancelable { count.add(1) } }
                        }
                        let left = Task { try? await lock.withLockCancelable { count.add(1) } }
                        left.cancel()
                    }
                }
            }
            let other = Task { try? await lock.withLockCancelable { count.add(1) } }
            other.cancel()
            await outer.value
            _ = await other.value
            let isFree = Counter()
            await lock.withLock { isFree.add(1) }
            #expect(isFree.value == 1 && count.value >= 4)
        }
    }

    @Test("a value that arrives at the end of an interval is not lost, nor is the waiting one")
    func oneMoment() async {
        for _ in 0..<200 {
            let (clock, subject) = (TestClock(), Subject(value: 0))
            let throttled = await subject.throttle(for: .seconds(1), clock: clock)
            let debounced = await subject.debounce(for: .seconds(1), clock: clock)
            let delayed = await subject.map { $0 % 2 == 1 }.hold(for: .seconds(1), clock: clock)
            await subject.set(1)
            await subject.set(2)
            #expect(await eventually { clock.sleeperCount >= 3 })
            async let advanced: Void = { clock.set(to: clock.now.advanced(by: .seconds(1))) }()
            async let sent: Void = subject.set(4)
            _ = await (advanced, sent)
            #expect(
                await eventually {
                    clock.set(to: clock.now.advanced(by: .seconds(1)))
                    let values = (
                        await throttled.currentValue(), await debounced.currentValue(), await delayed.currentValue()
                    )
                    return values == (4, 4, false)
                })
        }
    }

    @Test("a stream of optionals has nil as a value")
    func optionals() async {
        let subject = Subject<Int?>(value: nil)
        #expect(await subject.get() == .some(.none))
        let (filtered, unique) = (await subject.filter { _ in true }, await subject.removeDuplicates())
        let log = OperatorState<[Int?]>([])
        let tap = await unique.tap { value in log.withLock { $0.append(value) } }
        await subject.set(nil)
        await subject.set(1)
        await subject.set(nil)
        #expect(log.value == [nil, 1, nil])
        #expect(await filtered.currentValue() == .some(.none))
        let clock = TestClock()
        let debounced = await subject.debounce(for: .seconds(1), clock: clock)
        #expect(await debounced.currentValue() == .some(.none))
        withExtendedLifetime(tap) {}
    }
}

private final class Counter: Sendable {
    private let number = OperatorState(0)
    var value: Int { number.value }
    func add(_ other: Int) { number.withLock { $0 += other } }
}

@testable import QStream
import Relays
import TestSupport
import Testing

/// Object lifetimes.
@Suite(.timeLimit(.minutes(5))) struct MemoryTests {
    private final class Token: Sendable {}

    @Test("a chain lives as long as its subscription, and leaves nothing in its source")
    func chain() async {
        let subject = Subject(value: 1)
        weak var retained: Token?
        var subscription: AnySubscription?
        do {
            let token = Token()
            retained = token
            subscription = await subject.map { value in
                _ = token
                return value
            }
            .filter { _ in true }.removeDuplicates().combineLatest(subject).merge(Relay()).tap { _ in _ = token }
        }
        #expect(retained != nil)
        #expect(subject.outlet.inletCount == 2)
        subscription = nil
        #expect(retained == nil)
        #expect(subject.outlet.inletCount == 0)
        withExtendedLifetime(subscription) {}
    }

    @Test("a chain keeps its source alive, and there is no cycle")
    func source() async {
        weak var retained: Subject<Int>?
        var subscription: AnySubscription?
        do {
            let subject = Subject(value: 1)
            retained = subject
            subscription = await subject.map { $0 + 1 }.any().tap { _ in }
        }
        #expect(retained != nil)
        subscription?.cancel()
        #expect(retained == nil)
        withExtendedLifetime(subscription) {}
    }

    @Test("switchToLatest releases the previous stream, and all streams at its own end")
    func switching() async {
        let (a, b) = (Subject(value: 1), Subject(value: 2))
        let choice = Subject(value: a)
        var subscription: AnySubscription? = await choice.switchToLatest().tap { _ in }
        #expect((a.outlet.inletCount, b.outlet.inletCount) == (1, 0))
        await choice.set(b)
        #expect((a.outlet.inletCount, b.outlet.inletCount) == (0, 1))
        subscription = nil
        #expect((a.outlet.inletCount, b.outlet.inletCount, choice.outlet.inletCount) == (0, 0, 0))
        withExtendedLifetime(subscription) {}
    }

    @Test("a subscriber may end its own subscription, and gets no further value")
    func cancelInside() async {
        let subject = Subject(value: 0)
        let log = Log<Int>()
        let box = OperatorState<AnySubscription?>(nil)
        box.exchange(
            await subject.subscribe { value in
                log.record(value)
                box.exchange(nil)
            })
        await subject.set(1)
        await subject.set(2)
        #expect(log.values == [1])
    }

    @Test("a subscription cancelled during a send does not get the value")
    func cancelDuring() async {
        let subject = Subject(value: 0)
        let log = Log<Int>()
        let second = OperatorState<AnySubscription?>(nil)
        let first = await subject.subscribe { _ in second.exchange(nil) }
        second.exchange(await subject.subscribe { log.record($0) })
        await subject.set(1)
        #expect(log.values.isEmpty)
        withExtendedLifetime(first) {}
    }

    @Test("a value is freed when its last reference is released")
    func values() async {
        let subject = Subject<Token?>(value: nil)
        let chain = await subject.map { $0 }.combineLatest(subject).tap { _ in }
        weak var retained: Token?
        do {
            let token = Token()
            retained = token
            await subject.set(token)
        }
        #expect(retained != nil)
        await subject.set(nil)
        #expect(retained == nil)
        withExtendedLifetime(chain) {}
    }

    @Test("a relay derived from a stream retains the chain, and releases it")
    func relay() async throws {
        let subject = Subject(value: 1)
        var relay: StateRelay<Int>? = try await subject.map { $0 * 2 }.relay()
        #expect(subject.outlet.inletCount == 1)
        #expect(relay?.currentValue == 2)
        relay = nil
        #expect(subject.outlet.inletCount == 0)
        _ = relay
    }

    @Test("readers of sequences, and sequences of streams, end with their owners")
    func sequences() async {
        let subject = Subject(value: 1)
        for await value in await subject.tapAsyncStream() {
            #expect(value == 1)
            break
        }
        #expect(await eventually { subject.outlet.inletCount == 0 }, "the sequence has left the stream")

        let relay = StateRelay(0)
        var stream: AsyncSequenceStream<Int>? = AsyncSequenceStream(relay)
        #expect(await eventually { relay.waitingReaderCount == 1 }, "the reader waits")
        stream = nil
        #expect(await eventually { relay.waitingReaderCount == 0 }, "the reader was removed")
        _ = stream

        var pipe: AsyncPipe<Int>? = await subject.asyncPipe()
        #expect(subject.outlet.inletCount == 1)
        pipe = nil
        #expect(subject.outlet.inletCount == 0)
        _ = pipe
    }
}

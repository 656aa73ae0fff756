@testable import QStream
import Relays
import Synchronization
import Testing

/// A million values through one stream: no more of them exist than places that retain one.
@Suite(.timeLimit(.minutes(5))) struct GrowthTests {
    #if TREBUCHET_THREAD_SANITIZER
        private let count = 20_000
    #else
        private let count = 1_000_000
    #endif

    /// The number of existing values, and its maximum.
    private final class ValueCounter: Sendable {
        private let alive = Atomic(0)
        private let peak = Atomic(0)

        var most: Int { peak.load(ordering: .relaxed) }

        func add() {
            let now = alive.add(1, ordering: .relaxed).newValue
            peak.max(now, ordering: .relaxed)
        }

        func remove() { alive.subtract(1, ordering: .relaxed) }
    }

    private final class CountedValue: Sendable {
        let number: Int
        private let population: ValueCounter

        init(_ number: Int, of population: ValueCounter) {
            self.number = number
            self.population = population
            population.add()
        }

        deinit { population.remove() }
    }

    @Test("a shared stream retains at most two of a million values")
    func shared() async {
        let (population, received) = (ValueCounter(), Received())
        let subject = Subject<CountedValue?>(value: nil)
        let shared = await subject.map { $0 }
        var subscriptions: [AnySubscription] = []
        for _ in 0..<3 { subscriptions.append(await shared.subscribe { _ in received.note() }) }
        for number in 0..<count { await subject.set(CountedValue(number, of: population)) }
        #expect(received.count == 3 * count)
        // The new one, and the one before.
        #expect(population.most <= 2)
        #expect(subject.outlet.activeWaves.isEmpty && subject.outlet.inletCount == 1)
        withExtendedLifetime(subscriptions) {}
    }

    @Test("a buffer with a blocked reader retains its capacity and three more")
    func buffered() async {
        let (population, gate, last) = (ValueCounter(), StateRelay(false), StateRelay(-1))
        let subject = Subject<CountedValue?>(value: nil)
        let subscription = await subject.dispatch(bufferingPolicy: .bufferingNewest(16)).subscribe { member in
            last.update(member?.number ?? -1)
            for await isOpen in gate.stream where isOpen { break }
        }
        for number in 0..<count { await subject.set(CountedValue(number, of: population)) }
        // The buffer's, the blocked one, the new one, and the subject's.
        #expect((17...19).contains(population.most), "\(population.most)")
        gate.update(true)
        for await number in last.stream where number == count - 1 { break }
        #expect(subject.outlet.activeWaves.isEmpty)
        withExtendedLifetime(subscription) {}
    }

    @Test("sequences and event relays with sixteen places retain no more")
    func sequences() async throws {
        let (population, relay) = (ValueCounter(), EventRelay<CountedValue>())
        let subject = Subject<CountedValue?>(value: nil)
        let stream = await subject.tapAsyncStream(bufferingPolicy: .bufferingNewest(16))
        let events = relay.subscribe(bufferLimit: 16, onOverflow: .dropOldest)
        for number in 0..<count {
            let member = CountedValue(number, of: population)
            await subject.set(member)
            relay.send(member)
        }
        #expect((16...18).contains(population.most), "\(population.most)")
        var (members, unread) = (stream.makeAsyncIterator(), events.makeAsyncIterator())
        for number in (count - 16)..<count {
            #expect(await members.next()??.number == number)
            #expect(try await unread.next()?.number == number)
        }
    }

    private final class Received: Sendable {
        private let values = Atomic(0)

        var count: Int { values.load(ordering: .relaxed) }

        func note() { values.add(1, ordering: .relaxed) }
    }
}

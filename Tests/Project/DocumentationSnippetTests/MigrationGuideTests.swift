import QStream
import Relays
import SharedState
import StateMachines
import Synchronization
import Testing

/// The entries of the table "Coming from elsewhere" of `Docs/Guides/StateFamily.md`, in the style of each original library.
@MainActor
@Suite(.timeLimit(.minutes(5))) struct MigrationGuideTests {
    @Test("Combine's subjects, sinks, operators and closure isolation have counterparts")
    func combine() async {
        let current = StateRelay(1)
        current.update(2)
        #expect(current.currentValue == 2)
        let subject = Subject(value: 1)
        await subject.set(2)
        #expect(await subject.value == 2)

        let events = EventRelay<Int>()
        let received = events.subscribe(bufferLimit: 4, onOverflow: .fail)
        events.send(1)
        #expect(received.bufferedCount == 1)
        let impulses = Relay<Int>()
        var subscriptions: Set<AnySubscription> = []
        let seen = Mutex<[String]>([])
        await impulses.tap { value in seen.withLock { $0.append("impulse \(value)") } }.store(in: &subscriptions)
        await impulses.send(1)

        await subject.removeDuplicates().scan(0) { $0 + $1 }.combineLatest(subject)
            .tap { @MainActor sum, value in seen.withLock { $0.append("\(sum) \(value)") } }
            .store(in: &subscriptions)
        await subject.merge(impulses).map { Streams.Constant($0) }.switchToLatest()
            .map { @concurrent value in value }
            .tap { value in seen.withLock { $0.append("merged \(value)") } }
            .store(in: &subscriptions)
        await subject.set(3)
        #expect(seen.withLock { $0 } == ["impulse 1", "2 2", "merged 2", "merged 3", "5 3"])

        let clock = TestClock()
        let late = await subject.debounce(for: .seconds(1), clock: clock).throttle(for: .seconds(1), clock: clock)
            .dispatch()
        #expect(await late.currentValue() == 3)
        let future = await Streams.Constant(1).mapToFuture { $0 + 1 }
        #expect(await future.waitFor { $0 != nil } == 2)
        subscriptions = []
    }

    private struct Search: Reducer {
        struct State: Equatable {
            var found: [Int] = []
            var ticks = 0
        }
        enum Action: Equatable { case find, found(Int), tick }

        let results: AsyncStream<Int>
        @Dependency(\.continuousClock) var clock

        func reduce(into state: inout State, action: Action) -> Effect<Action> {
            switch action {
            case .find:
                // Any sequence is accepted as it is, and a timer is a loop.
                return .merge(
                    .run { send in for await result in results { await send(.found(result)) } },
                    .run { send in
                        while true {
                            try await clock.sleep(for: .seconds(1))
                            await send(.tick)
                        }
                    }
                    .cancellable(id: "timer"))
            case .found(let number):
                state.found.append(number)
                return .none
            case .tick:
                state.ticks += 1
                return .cancel(id: "timer")
            }
        }
    }

    @Test("The Composable Architecture's timers, sequences and discouraged functions have counterparts")
    func composableArchitecture() async {
        let (results, found) = AsyncStream.makeStream(of: Int.self)
        let clock = TestClock()
        let store: TestStoreOf<Search> = TestStore(initialState: Search.State()) {
            Search(results: results)
        } withDependencies: {
            $0.continuousClock = clock
        }
        await store.send(.find)
        found.yield(1)
        await store.receive(.found(1)) { $0.found = [1] }
        found.finish()
        await clock.advance(by: .seconds(1))
        await store.receive(.tick) { $0.ticks = 1 }
        await store.finish()

        let plain: StoreOf<Search> = Store(initialState: Search.State()) { Search(results: results) }
        #expect(plain.state.ticks == 0)
        let silent: @Sendable (String) async -> Void = unimplemented("silent", placeholder: ())
        await withKnownIssue { await silent("called") }
    }

    @Test("swift-sharing's wrappers, updates and test stores have counterparts")
    func sharing() async {
        let count: Int = await SharedStore.$current.withValue(SharedStore()) {
            @Shared(.inMemory("count")) var count = 1
            @SharedReader(.inMemory("count")) var other = 0
            $count.withLock { $0 += 1 }
            for await value in $count.updates where value == 2 { break }
            return other
        }
        #expect(count == 2)
    }

    @Test("AsyncAlgorithms' channels, sequence operators, buffers and timers have counterparts")
    func asyncAlgorithms() async throws {
        let channel = AsyncPipe<Int>()
        async let pushed = channel.push(1)
        #expect(await channel.pull() == 1)
        #expect(await pushed)

        let (numbers, number) = AsyncStream.makeStream(of: Int.self)
        let doubled = await numbers.stream().removeDuplicates().map { $0 * 2 }
        var sequence = await doubled.asyncStream().makeAsyncIterator()
        number.yield(1)
        #expect(await sequence.next() == 2)

        let shared = StateRelay(7)
        var (one, two) = (shared.stream.makeAsyncIterator(), shared.stream.makeAsyncIterator())
        #expect(await one.next() == 7)
        #expect(await two.next() == 7)
        let timer = await Streams.Timer(interval: .milliseconds(1))
        #expect(await timer.getNext() != nil)
    }
}

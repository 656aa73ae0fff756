import Synchronization
import TestSupport
import Testing

@testable import StateMachines

@MainActor
@Suite("Effects under their established names", .timeLimit(.minutes(5)))
struct EffectNamesTests {
    private func store(
        _ clock: TestClock, _ effect: @escaping @Sendable (Effect<Int>) -> Effect<Int>
    ) -> StoreOf<Reduce<[Int], Int>> {
        Store(initialState: []) {
            Reduce { state, action in
                if action < 0 {
                    state.append(-action)
                    return .none
                }
                return effect(.send(-action))
            }
        } withDependencies: {
            $0.continuousClock = clock
            $0.mainQueue = clock
        }
    }

    @Test("a debounced effect starts after a quiet interval, and only the last one")
    func debounce() async {
        let clock = TestClock()
        let store = store(clock) { $0.debounce(id: "a", for: .seconds(1)) }
        store.send(1)
        #expect(await eventually { clock.sleeperCount == 1 }, "it waits")
        await clock.advance(by: .milliseconds(900))
        let second = store.send(2)
        #expect(await eventually { clock.sleepers == [.milliseconds(1900)] }, "only this effect waits")
        await clock.advance(by: .milliseconds(900))
        #expect(store.state == [])
        await clock.advance(by: .milliseconds(100))
        await second.finish()
        #expect(store.state == [2])
        let third = store.send(3)
        #expect(await eventually { clock.sleeperCount == 1 }, "it waits")
        await clock.run()
        await third.finish()
        #expect(store.state == [2, 3])
    }

    @Test("a throttled effect starts at once, then once in an interval: the latest or the first")
    func throttle() async {
        for latest in [true, false] {
            let clock = TestClock()
            let store = store(clock) { [queue = clock] in
                $0.throttle(id: "a", for: .seconds(1), scheduler: queue, latest: latest)
            }
            store.send(1)
            #expect(store.state == [1])
            let second = store.send(2)
            let third = store.send(3)
            #expect(await eventually { clock.sleeperCount == (latest ? 2 : 1) }, "they wait")
            await clock.advance(by: .milliseconds(999))
            #expect(store.state == [1])
            await clock.advance(by: .milliseconds(1))
            await second.finish()
            await third.finish()
            #expect(store.state == (latest ? [1, 3] : [1, 2]))
            let fourth = store.send(4)
            #expect(await eventually { clock.sleeperCount == 1 }, "it waits")
            await clock.advance(by: .seconds(5))
            await fourth.finish()
            #expect(store.state.last == 4)
            store.send(5)
            #expect(store.state.count == 4)
        }
    }

    @Test("waiting throttled effects can be cancelled, and the next one starts at its time")
    func throttleCancelled() async {
        let clock = TestClock()
        let store = store(clock) { effect in
            .merge(effect.throttle(id: "a", for: .seconds(1), latest: true))
        }
        store.send(1)
        let waiting = store.send(2)
        waiting.cancel()
        await waiting.finish()
        store.send(3)
        #expect(await eventually { clock.sleeperCount == 1 }, "it waits")
        await clock.advance(by: .seconds(1))
        #expect(await eventually { store.state == [1, 3] }, "it begins")
    }

    @Test(
        "a throttled effect cancelled early does not delay later ones",
        arguments: ["as it began to wait", "before it ran", "with its task", "with its enclosing effect"])
    func throttleCancelledEarly(_ way: String) async {
        let clock = TestClock()
        let store = Store(initialState: [Int]()) {
            Reduce<[Int], Int> { state, action in
                let effect = Effect.send(-action).throttle(id: "a", for: .seconds(1), latest: false, clock: clock)
                switch action {
                case ..<0: state.append(-action)
                case 10: return .merge(effect, .cancel(id: "a"))
                case 11: return .cancel(id: "a")
                case 12: return .concatenate(.cancel(id: "b"), effect.cancellable(id: "b"))
                case 13: return .cancel(id: "b")
                default: return effect
                }
                return .none
            }
        }
        store.send(1)
        switch way {
        case "as it began to wait": store.send(10)
        case "before it ran":
            store.send(2)
            store.send(11)
        case "with its task": store.send(2).cancel()
        default:
            store.send(12)
            store.send(13)
        }
        // Within the interval, and nothing has run meanwhile.
        let next = store.send(3)
        #expect(await eventually { clock.sleeperCount == 1 }, "it waits")
        await clock.advance(by: .seconds(1))
        await next.finish()
        #expect(store.state == [1, 3])
    }

    @Test("a part of an effect is cancelled by its id, by another effect and by a task within one")
    func taskCancellation() async {
        let seen = Recorder()
        let store = Store(initialState: 0) {
            Reduce<Int, Int> { _, action in
                switch action {
                case 1, 2:
                    return .run { _ in
                        await withTaskCancellation(id: "part", cancelInFlight: action == 2) {
                            seen.record("begin \(action)")
                            await untilCancelled()
                        }
                        seen.record("after \(action)")
                    }
                case 3: return .cancel(id: "part")
                default: return .run { _ in Task.cancel(id: "part") }
                }
            }
        }
        let first = store.send(1)
        #expect(await eventually { seen.entries == ["begin 1"] }, "it runs")
        let second = store.send(2)
        await first.finish()
        #expect(await eventually { seen.entries.contains("begin 2") }, "it runs")
        store.send(3)
        await second.finish()
        let third = store.send(1)
        #expect(await eventually { seen.entries.count == 5 }, "it runs")
        store.send(4)
        await third.finish()
        #expect(seen.entries.count { $0.hasPrefix("after") } == 3)
    }

    @Test("outside of effects a task's work is cancelled by its id, and throws its error")
    func taskCancellationOutside() async {
        let begun = Recorder()
        let task = Task {
            try await withTaskCancellation(id: "outside") { () async throws -> Int in
                begun.record("begun")
                await untilCancelled()
                try Task.checkCancellation()
                return 1
            }
        }
        #expect(await eventually { begun.entries.count == 1 }, "it runs")
        Task.cancel(id: "outside")
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test("throttling holds no lock while it reads a clock whose own code throttles")
    func throttlingClock() {
        let (throttles, plain) = (ThrottleRegistry(), TestClock())
        let clock = ReentrantClock {
            _ = throttles.startEffect(EffectID("other"), .seconds(1), latest: false, plain, CancellationFlag())
        }
        guard case .go = throttles.startEffect(EffectID("a"), .seconds(1), latest: true, clock, CancellationFlag()),
            case .wait(.seconds(1), let ticket) = throttles.startEffect(
                EffectID("a"), .seconds(1), latest: true, clock, CancellationFlag())
        else {
            Issue.record("the first one does not start, or the second one does not wait")
            return
        }
        #expect(throttles.endEffect(EffectID("a"), ticket, isOver: true, clock))
        #expect(clock.readings > 3)
    }
}

/// A stopped clock that runs a closure at each read, except for reads in the closure.
private final class ReentrantClock: _Concurrency.Clock {
    typealias Instant = TestClock.Instant

    private let read: @Sendable () -> Void
    private let count = Atomic(0)
    private let isRead = Atomic(false)

    init(_ read: @escaping @Sendable () -> Void) { self.read = read }

    var readings: Int { count.load(ordering: .relaxed) }
    var minimumResolution: Duration { .zero }

    var now: Instant {
        count.add(1, ordering: .relaxed)
        if !isRead.exchange(true, ordering: .relaxed) {
            read()
            isRead.store(false, ordering: .relaxed)
        }
        return Instant()
    }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {}
}

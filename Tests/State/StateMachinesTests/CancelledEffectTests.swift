import Synchronization
import TestSupport
import Testing

@testable import StateMachines

@MainActor
@Suite("Cancelled effects", .timeLimit(.minutes(5)))
struct CancelledEffectTests {
    /// Observes an action of an effect that is already on its way to the main actor.
    private final class SentActionProbe: Sendable {
        private let isPassed = Mutex(false)

        func pass(_ action: Int) -> Int {
            isPassed.withLock { $0 = true }
            return action
        }

        /// Keeps the main actor busy meanwhile, so that the action does not arrive.
        @MainActor
        func waitUntilPassed() { while !isPassed.withLock({ $0 }) {} }
    }

    private func store(_ effect: @escaping @Sendable (Int) -> Effect<Int>) -> StoreOf<Reduce<[Int], Int>> {
        Store(initialState: []) {
            Reduce { state, action in
                guard action > 0 else { return effect(action) }
                state.append(action)
                return .none
            }
        }
    }

    @Test("a cancelled effect sends nothing from a task that it awaits")
    func innerTask() async {
        let (begun, gate) = (Recorder(), Latch())
        let store = store { action in
            if action < 0 { return .cancel(id: "a") }
            return .run { send in
                let inner = Task {
                    begun.record("begun")
                    await gate.wait()
                    await send(1)
                }
                await inner.value
            }
            .cancellable(id: "a")
        }
        let task = store.send(0)
        #expect(await eventually { begun.entries == ["begun"] }, "it runs")
        store.send(-1)
        gate.open()
        await task.finish()
        #expect(store.state == [])
    }

    @Test("a cancelled effect is ignored, though it has already sent an action", arguments: [false, true])
    func overtaken(_ sendsAtOnce: Bool) async {
        let passage = SentActionProbe()
        let store = store { action in
            if action < 0 { return .cancel(id: "a") }
            let effect: Effect<Int> = sendsAtOnce ? .concatenate(.run { _ in }, .send(1)) : .run { await $0(1) }
            return effect.map { passage.pass($0) }.cancellable(id: "a")
        }
        let task = store.send(0)
        passage.waitUntilPassed()
        store.send(-1)
        await task.finish()
        #expect(store.state == [])
    }

    @Test("a cancelled effect is ignored by an owner that sends delivered actions itself")
    func overtakenOnOtherActor() async {
        let reducer = Reduce<[Int], Int> { state, action in
            switch action {
            case 0: return .run { await $0(1) }.cancellable(id: "a")
            case 9: return .cancel(id: "a")
            default: state.append(action)
            }
            return .none
        }
        let (onItsWay, gate) = (Recorder(), Latch())
        let owner = Owner { reducer }
        owner.send(0) {
            onItsWay.record("sent")
            await gate.wait()
        }
        #expect(await eventually { onItsWay.entries == ["sent"] }, "the effect has sent its action")
        owner.send(9) {}
        gate.open()
        await owner.ended()
        #expect(owner.state == [])
    }

    @Test("the cancelled effect of a removed child is not reported, though it has already sent an action")
    func closed() async {
        let passage = SentActionProbe()
        let reports = await issues {
            let store = Store(initialState: Closing()) {
                Reduce<Closing, ClosingAction> { state, action in
                    if case .close = action { state.child = nil }
                    return .none
                }
                .ifLet(\.child, action: \.child) {
                    Reduce<Int, Int> { state, action in
                        state += action
                        return action == 0 ? .run { await $0(1) }.map { passage.pass($0) } : .none
                    }
                }
            }
            let task = store.send(.child(0))
            passage.waitUntilPassed()
            store.send(.close)
            await task.finish()
        }
        #expect(reports == [])
    }

    struct Closing: Equatable { var child: Int? = 0 }
    @CasePathable
    enum ClosingAction { case child(Int), close }

    @Test("a cancellation applies to effects returned before it, also when it had to wait")
    func lateCancellation() async {
        let (begun, gate, end) = (Recorder(), Latch(), Latch())
        let store = store { action in
            if action == 0 { return .concatenate(.run { _ in await gate.wait() }, .cancel(id: "a")) }
            return .run { send in
                begun.record("begun")
                await end.wait()
                await send(2)
            }
            .cancellable(id: "a")
        }
        let first = store.send(0)
        let second = store.send(-1)
        #expect(await eventually { begun.entries == ["begun"] }, "it runs")
        gate.open()
        await first.finish()
        end.open()
        await second.finish()
        #expect(store.state == [2])
    }

    @Test("an effect that throws another task's cancellation is not cancelled: its handler receives the error")
    func foreignCancellation() async {
        let store = store { _ in
            .run { _ in
                // Like a call that was cancelled at the other end.
                throw CancellationError()
            } catch: { error, send in
                if error is CancellationError { await send(1) }
            }
        }
        await store.send(0).finish()
        #expect(store.state == [1])
    }

    @Test("the handler of a cancelled effect is not called for its own cancellation")
    func ownCancellation() async {
        let handled = Recorder()
        let store = store { action in
            if action < 0 { return .cancel(id: "a") }
            return .run { _ in
                await untilCancelled()
                throw CancellationError()
            } catch: { _, _ in
                handled.record("handled")
            }
            .cancellable(id: "a")
        }
        let task = store.send(0)
        store.send(-1)
        await task.finish()
        let second = store.send(0)
        await Task.yield()
        second.cancel()
        await second.finish()
        #expect(handled.entries == [])
    }
}

/// Owns a state and a machine, like a distributed actor.
@MainActor
final class Owner {
    private(set) var state: [Int] = []
    private let machine: EmbeddedReducer<[Int], Int>
    private var tasks: [StoreTask] = []

    init<R: Reducer>(_ reducer: () -> R) where R.State == [Int], R.Action == Int {
        machine = EmbeddedReducer(reducer: reducer)
    }

    @discardableResult
    func send(_ action: Int, _ onDelivery: @escaping @Sendable () async -> Void) -> StoreTask {
        let task = machine.send(action, to: &state) { [weak self] action in
            await onDelivery()
            _ = await self?.send(action, onDelivery)
        }
        tasks.append(task)
        return task
    }

    /// Returns when the effects of all sent actions have ended.
    func ended() async {
        for task in tasks { await task.finish() }
    }
}

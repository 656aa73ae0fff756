import Observation
import Synchronization
import TestSupport
import Testing

@testable import StateMachines

@MainActor
@Suite("Tasks of actions", .timeLimit(.minutes(5)))
struct StoreTaskTests {
    private typealias Lists = StoreOf<Reduce<[Int], Int>>

    /// Holds the store that effects send to directly, like a delegate or a view model.
    private final class Reference: Sendable {
        private let store = Mutex<Lists?>(nil)
        func set(_ new: Lists?) { store.withLock { $0 = new } }
        func send(_ action: Int) async -> StoreTask {
            let store = store.withLock { $0 }!
            return await store.send(action)
        }
        /// Sends from code that runs on the main actor.
        func sendNow(_ action: Int) -> StoreTask {
            let store = store.withLock { $0 }!
            return MainActor.assumeIsolated { store.send(action) }
        }
    }

    private func store(_ effect: @escaping @Sendable (Int) -> Effect<Int>) -> Lists {
        Store(initialState: []) {
            Reduce { state, action in
                if action > 0 { state.append(action) }
                return effect(action)
            }
        }
    }

    /// Sends an action as an observer of the next change does.
    private func sendAsObserver(_ action: Int, to store: Lists) -> StoreTask {
        let task = Mutex<StoreTask?>(nil)
        withObservationTracking {
            _ = store.state
        } onChange: {
            // Observers are called where the store changes: on the main actor.
            let sent = MainActor.assumeIsolated { store.send(action) }
            task.withLock { $0 = sent }
        }
        store.send(1)
        return task.withLock { $0! }
    }

    @Test("the task of an observer's action covers the effects of that action")
    func observer() async {
        let gate = Latch()
        let store = store { action in
            guard action == 5 else { return .none }
            return .run { send in
                await gate.wait()
                await send(6)
            }
        }
        let task = sendAsObserver(5, to: store)
        let atEnd = Task {
            await task.finish()
            return store.withState { $0 }
        }
        await Task.yield()
        gate.open()
        #expect(await atEnd.value == [1, 5, 6])
    }

    @Test("the task of an observer's action cancels the effects of that action, and no others")
    func observerCancels() async {
        let (recorder, gate) = (Recorder(), Latch())
        let store = store { action in
            switch action {
            case 5:
                .run { _ in
                    recorder.record("begun")
                    await untilCancelled()
                    recorder.record("ended")
                }
            case 1:
                .run { send in
                    await gate.wait()
                    await send(2)
                }
            default: .none
            }
        }
        let task = sendAsObserver(5, to: store)
        #expect(await eventually { recorder.entries == ["begun"] }, "it runs")
        task.cancel()
        await task.finish()
        #expect(recorder.entries == ["begun", "ended"])
        gate.open()
        #expect(await eventually { store.withState { $0 == [1, 5, 2] } }, "the other one continues")
    }

    @Test("the task of a reducer's action covers the effects of that action, including synchronous ones")
    func reducer() async {
        let (reference, gate) = (Reference(), Latch())
        let task = Mutex<StoreTask?>(nil)
        let store = store { action in
            switch action {
            case 1:
                let sent = reference.sendNow(2)
                task.withLock { $0 = sent }
                return .none
            case 2: return .send(3)
            case 3:
                return .run { send in
                    await gate.wait()
                    await send(4)
                }
            default: return .none
            }
        }
        reference.set(store)
        store.send(1)
        let atEnd = Task {
            await task.withLock { $0! }.finish()
            return store.withState { $0 }
        }
        await Task.yield()
        gate.open()
        #expect(await atEnd.value == [1, 2, 3, 4])
        reference.set(nil)
    }

    @Test("a task can be awaited from elsewhere before its action is reduced")
    func beforeReduced() async {
        let group = EffectGroup(of: EffectTasks<Int>(), isDeferred: true)
        let action = QueuedAction(1, group)
        let (waits, ended) = (Recorder(), Recorder())
        let waiting = Task {
            waits.record("waits")
            await StoreTask(group).finish()
            ended.record("ended")
        }
        #expect(await eventually { waits.entries == ["waits"] }, "it waits")
        await Task.yield()
        #expect(ended.entries == [])
        action.markReduced()
        await waiting.value
    }

    @Test("a task in an effect's code cancels the effects of its action, and not the enclosing effect")
    func effectsCode() async {
        let (reference, log) = (Reference(), Recorder())
        let store = store { action in
            switch action {
            case 1:
                .run { _ in
                    let task = await reference.send(2)
                    task.cancel()
                    await task.finish()
                    log.record(Task.isCancelled ? "cancelled" : "goes on")
                }
            case 2: .run { _ in await untilCancelled() }
            default: .none
            }
        }
        reference.set(store)
        await store.send(1).finish()
        #expect(log.entries == ["goes on"])
        reference.set(nil)
    }

    @Test("the task of an action sent by an effect includes the effects of its following actions")
    func delivered() async {
        let gate = Latch()
        let reducer = Reduce<[Int], Int> { state, action in
            state.append(action)
            switch action {
            case 1: return .run { await $0(2) }
            case 2:
                return .run { send in
                    await gate.wait()
                    await send(3)
                }
            default: return .none
            }
        }
        let owner = Owner { reducer }
        let task = owner.send(1) {}
        let atEnd = Task {
            await task.finish()
            return owner.state
        }
        #expect(await eventually { owner.state == [1, 2] }, "the effect has sent its action")
        gate.open()
        #expect(await atEnd.value == [1, 2, 3])
    }
}

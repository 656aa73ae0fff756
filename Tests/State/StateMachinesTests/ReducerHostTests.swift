import Testing

@testable import StateMachines

@Suite("Reducer hosts", .timeLimit(.minutes(5)))
struct ReducerHostTests {
    struct Feature: Reducer {
        struct State: Equatable { var count = 0 }
        enum Action { case add, addLater, addTwice }

        func reduce(into state: inout State, action: Action) -> Effect<Action> {
            switch action {
            case .add:
                state.count += 1
                return .none
            case .addLater: return .run { await $0(.add) }
            case .addTwice: return .concatenate(.send(.add), .send(.add))
            }
        }
    }

    @Test("a host reduces actions away from the main actor")
    func actions() async {
        let host = ReducerHost(initialState: Feature.State()) { Feature() }
        await host.send(.add)
        await host.send(.addLater).finish()
        #expect(await host.state.count == 2)
    }

    @Test("observers get the newest state, and end with the host")
    func states() async {
        var host: ReducerHostOf<Feature>? = ReducerHost(initialState: Feature.State()) { Feature() }
        var states = await host?.states().makeAsyncIterator()
        #expect(await states?.next()?.count == 0)
        await host?.send(.add)
        await host?.send(.addTwice)
        #expect(await states?.next()?.count == 3)
        host = nil
        #expect(await states?.next() == nil)
    }

    @Test("a host accepts actions from many concurrent tasks and loses none")
    func manyTasks() async {
        let host = ReducerHost(initialState: Feature.State()) { Feature() }
        await withTaskGroup { group in
            for _ in 0..<100 {
                group.addTask { await host.send(.addLater).finish() }
                group.addTask { _ = await host.send(.add) }
            }
        }
        #expect(await host.state.count == 200)
    }

    /// Creates hosts as an app does: on the main actor, from its own properties.
    @MainActor
    final class Maker {
        let first = Feature.State(count: 3)
        let feature = Feature()

        func make() -> ReducerHostOf<Feature> {
            ReducerHost(initialState: first) {
                feature
            } withDependencies: {
                $0.context = .test
            }
        }
    }

    private actor Other {
        func make() -> ReducerHost<Int, Int> {
            ReducerHost(initialState: 1) {
                Reduce { state, action in
                    state += action
                    return .none
                }
            }
        }
    }

    @Test("a host is created by code of the main actor, and of any other")
    func madeOnActors() async {
        let host = await Maker().make()
        await host.send(.addTwice)
        #expect(await host.state.count == 5)
        let other = await Other().make()
        await other.send(2)
        #expect(await other.state == 3)
    }

    @Test("a busy reader gets the newest state")
    func busyReader() async {
        var host: ReducerHostOf<Feature>? = ReducerHost(initialState: Feature.State()) { Feature() }
        let states = await host?.states()
        for _ in 0..<100 { await host?.send(.add) }
        host = nil
        var counts: [Int] = []
        if let states { for await state in states { counts.append(state.count) } }
        #expect(counts == [100])
    }
}

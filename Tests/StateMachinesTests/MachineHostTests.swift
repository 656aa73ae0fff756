import Testing

@testable import StateMachines

@Suite("A host", .timeLimit(.minutes(2)))
struct MachineHostTests {
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

    @Test("reduces actions away from the main actor")
    func actions() async {
        let host = MachineHost(initialState: Feature.State()) { Feature() }
        await host.send(.add)
        await host.send(.addLater).finish()
        #expect(await host.state.count == 2)
    }

    @Test("gives the newest state to those who watch, and ends with them")
    func states() async {
        var host: MachineHostOf<Feature>? = MachineHost(initialState: Feature.State()) { Feature() }
        var states = await host?.states().makeAsyncIterator()
        #expect(await states?.next()?.count == 0)
        await host?.send(.add)
        await host?.send(.addTwice)
        #expect(await states?.next()?.count == 3)
        host = nil
        #expect(await states?.next() == nil)
    }

    @Test("takes actions from many tasks at once and loses none")
    func manyTasks() async {
        let host = MachineHost(initialState: Feature.State()) { Feature() }
        await withTaskGroup { group in
            for _ in 0..<100 {
                group.addTask { await host.send(.addLater).finish() }
                group.addTask { _ = await host.send(.add) }
            }
        }
        #expect(await host.state.count == 200)
    }
}

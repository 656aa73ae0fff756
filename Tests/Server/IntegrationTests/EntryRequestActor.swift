import StateMachines
import Trebuchet
import TrebuchetTesting

/// A state machine for entry requests: visitors, and the decisions about them.
@ComposableEffectRunner
struct EntryRequestMachine: StateMachine {
    struct State: Codable, Equatable, Sendable {
        var phase = Phase.closed
        var visitors: [String] = []
    }
    enum Phase: String, Codable, Sendable { case closed, asking, open }
    enum Input: Codable, Sendable { case ring(name: String), push, watch }
    enum IOEffect: Equatable {
        case ask(name: String)
        case chime
        case watch
    }
    enum IOResult: Equatable { case allowed(String), refused, slammed }

    @Dependency(EntryDecisionKey.self) var keeper

    static func reduceInput(_ state: State, _ input: Input) -> Transition {
        var next = state
        switch (state.phase, input) {
        case (.closed, .ring(let name)):
            next.phase = .asking
            return transition(next, .merge(.chime, .ask(name: name)))
        case (.open, .push):
            next.phase = .closed
            return nextState(next)
        case (_, .watch): return run(.watch)
        default: return undefined
        }
    }

    static func reduceIOResult(_ state: State, _ result: IOResult) -> Transition {
        var next = state
        switch (state.phase, result) {
        case (.asking, .allowed(let name)):
            next.phase = .open
            next.visitors.append(name)
        case (.asking, .refused), (.open, .slammed): next.phase = .closed
        default: return undefined
        }
        return nextState(next)
    }
}

extension EntryRequestMachine: EntryRequestMachine.EffectRunner {
    func runAsk(_ name: String) -> IOResultStream {
        .single { await keeper.lets(name) ? .allowed(name) : .refused }
    }

    func runChime() -> IOResultStream {
        .init { $0.finish() }
    }

    func runWatch() -> IOResultStream {
        IOResultStream { continuation in
            keeper.watch { continuation.yield(.slammed) }
            continuation.onTermination = { [keeper] _ in keeper.unwatch() }
        }
    }
}

/// The dependency that decides on entry.
struct EntryDecisionKey: DependencyKey {
    var lets: @Sendable (String) async -> Bool
    var watch: @Sendable (@escaping @Sendable () -> Void) -> Void = { _ in }
    var unwatch: @Sendable () -> Void = {}

    static let liveValue = EntryDecisionKey { _ in true }
    static let testValue = EntryDecisionKey(lets: unimplemented("Keeper.lets", placeholder: false))
}

/// A machine that clients can send to and observe.
@Trebuchet
distributed actor EntryRequestActor {
    @StreamedState var state: EntryRequestMachine.State = EntryRequestMachine.State()
    private let machine: EmbeddedReducer<EntryRequestMachine.State, EntryRequestMachine.Action>

    init(keeper: EntryDecisionKey, actorSystem: TrebuchetActorSystem) {
        machine = EmbeddedReducer {
            EntryRequestMachine()
        } withDependencies: {
            $0[EntryDecisionKey.self] = keeper
        }
        self.actorSystem = actorSystem
    }

    distributed func send(_ input: EntryRequestMachine.Input) { advance(.input(input)) }

    private func advance(_ action: EntryRequestMachine.Action) {
        machine.send(action, to: &state) { [weak self] action in
            await self?.whenLocal { $0.advance(action) }
        }
    }
}

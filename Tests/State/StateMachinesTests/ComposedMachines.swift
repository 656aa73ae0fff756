@testable import StateMachines

/// A machine in the shortest form: its events are its actions.
@StateMachine
@EffectComposition
struct TallyMachine: StateMachine {
    struct State: Equatable, Sendable {
        var count = 0
        var facts: [String] = []
    }
    enum Input: Equatable, Sendable { case increment, set(Int), ask }
    enum IOEffect: Equatable, Sendable { case fact(Int) }
    enum IOResult: Equatable, Sendable { case fact(String), other }

    @Dependency(\.clock) var clock

    static func reduceInput(_ state: State, _ input: Input) -> Transition {
        var state = state
        switch input {
        case .increment: state.count += 1
        case .set(let count): state.count = count
        case .ask: return run(.concat(.fact(state.count), .fact(state.count + 1)))
        }
        return nextState(state)
    }

    static func reduceIOResult(_ state: State, _ ioResult: IOResult) -> Transition {
        var state = state
        if case .fact(let fact) = ioResult { state.facts.append(fact) }
        return nextState(state)
    }
}

extension TallyMachine: TallyMachine.EffectRunner {
    func runFact(_ number: Int) -> IOResultStream {
        .single { number < 0 ? .other : .fact("\(number) at \(clock.now())") }
    }
}

/// A parent that forwards some of its events to a child.
@ComposableStateMachine
@StateMachine
struct TallyScreen: StateMachine {
    struct State: Equatable, Sendable {
        @NestedState var tally = TallyMachine.State()
        var seen: [String] = []
    }
    enum Input: Equatable, Sendable {
        @Forward(TallyMachine.Input.increment)
        case tapped
        @Forward(TallyMachine.Input.set)
        case set(Int)
        @ForwardValue(TallyMachine.Input.self)
        case tally(TallyMachine.Input)
        case own
    }
    typealias IOEffect = Never
    enum IOResult: Equatable, Sendable {
        @Forward(TallyMachine.IOResult.fact)
        case received(String)
    }

    static func reduceInput(_ state: State, _ input: Input) -> Transition {
        var state = state
        state.seen.append("\(input) \(state.tally.count)")
        return nextState(state)
    }

    static func reduceIOResult(_ state: State, _ ioResult: IOResult) -> Transition {
        var state = state
        state.seen.append("\(ioResult)")
        return nextState(state)
    }
}

/// A parent whose child's state is computed.
@ComposableStateMachine
@StateMachine
struct TallyPair: StateMachine {
    struct State: Equatable, Sendable {
        var tallies = [TallyMachine.State(), TallyMachine.State()]
        @NestedState var second: TallyMachine.State {
            get { tallies[1] }
            set { tallies[1] = newValue }
        }
    }
    enum Input: Equatable, Sendable {
        @ForwardValue(TallyMachine.Input.self)
        case second(TallyMachine.Input)
    }
    typealias IOEffect = Never
    enum IOResult: Equatable, Sendable {
        @Forward(TallyMachine.IOResult.self)
        case second(TallyMachine.IOResult)
    }

    static func reduceInput(_ state: State, _ input: Input) -> Transition { identity }
    static func reduceIOResult(_ state: State, _ ioResult: IOResult) -> Transition { identity }
}

/// A machine whose effects replace each other by their state.
struct SearchMachine: DebuggableStateMachine {
    struct State: Equatable, Sendable {
        var query = ""
        var found: [String] = []
    }
    enum Input: Equatable, Sendable { case type(String), stop }
    enum IOEffect: Equatable, Sendable { case search(String) }
    enum IOResult: Equatable, Sendable { case found(String) }

    let gate: @Sendable (String) async -> Void

    static func reduceInput(_ state: State, _ input: Input) -> Transition {
        switch input {
        case .type(let query): transition(State(query: query, found: state.found), .search(query))
        case .stop: nextState(State(query: "", found: state.found))
        }
    }

    static func reduceIOResult(_ state: State, _ ioResult: IOResult) -> Transition {
        guard case .found(let text) = ioResult else { return identity }
        return nextState(State(query: state.query, found: state.found + [text]))
    }

    func runIOEffect(_ ioEffect: IOEffect) -> IOResultStream {
        guard case .search(let query) = ioEffect else { return IOResultStream { $0.finish() } }
        return .single {
            await gate(query)
            return .found(query)
        }
    }

    static func makeIOEffectCancelID(_ state: State, _ action: Action) -> CancelID? {
        state.query.isEmpty ? nil : "search"
    }
}

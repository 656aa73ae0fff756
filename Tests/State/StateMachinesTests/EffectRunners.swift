public import StateMachines

// Machines in forms that are hard for a macro; their methods are in EffectRunners+elsewhere.swift.

@ComposableEffectRunner
struct Scripted: StateMachine {
    struct State: Equatable, Sendable { var results: [String] = [] }
    enum Input: Sendable { case play(IOEffect) }
    enum IOEffect: Equatable, Sendable {
        case fetch(Int)
        case log(String)
        case ping
    }
    typealias IOResult = String

    static func reduceInput(_ state: State, _ input: Input) -> Transition {
        switch input {
        case .play(let effect): run(effect)
        }
    }

    static func reduceIOResult(_ state: State, _ result: String) -> Transition {
        nextState(State(results: state.results + [result]))
    }
}

@ComposableEffectRunner
struct Keyed<Key: Hashable & Sendable>: StateMachine {
    struct State: Sendable { var found: [Key] = [] }
    enum Input: Sendable { case find(Key) }
    enum IOEffect: Sendable { case find(Key), forget }
    typealias IOResult = Key

    static func reduceInput(_ state: State, _ input: Input) -> Transition {
        switch input {
        case .find(let key): run(.concat(.forget, .find(key)))
        }
    }

    static func reduceIOResult(_ state: State, _ key: Key) -> Transition {
        nextState(State(found: state.found + [key]))
    }
}

extension Keyed {
    func runFind(_ key: Key) -> IOResultStream { .single { key } }
    func runForget() -> IOResultStream { .init { $0.finish() } }
}

@ComposableEffectRunner
actor Isolated: StateMachine {
    struct State: Equatable, Sendable { var counts: [Int] = [] }
    enum Input: Sendable { case count(by: Int) }
    enum IOEffect: Sendable { case count(by: Int), reset }
    typealias IOResult = Int

    private var total = 0

    static func reduceInput(_ state: State, _ input: Input) -> Transition {
        switch input {
        case .count(let step): run(.concat(.count(by: step), .count(by: step), .reset, .count(by: step)))
        }
    }

    static func reduceIOResult(_ state: State, _ count: Int) -> Transition {
        nextState(State(counts: state.counts + [count]))
    }

    // Isolated: it changes the actor's own state.
    func runCount(_ step: Int) -> IOResultStream {
        total += step
        return .single { [total] in total }
    }

    func runReset() -> IOResultStream {
        total = 0
        return .init { $0.finish() }
    }
}

extension Isolated: Isolated.EffectRunner {}

@ComposableEffectRunner
public struct Named: StateMachine {
    public struct State: Equatable, Sendable {
        var results: [String] = []
    }
    public enum Input: Sendable { case play(IOEffect) }
    public enum IOEffect: Sendable {
        public struct Request: Sendable { let text: String }
        case letter(in: String)
        case `default`
        case `switch`(`case`: Int)
        case fetch(id: Int)
        case fetchName(name: Int)
        case send(Request)
        #if DEBUG
            case probe
        #endif
    }
    public typealias IOResult = String

    public static func reduceInput(_ state: State, _ input: Input) -> Transition {
        switch input {
        case .play(let effect): run(effect)
        }
    }

    public static func reduceIOResult(_ state: State, _ result: String) -> Transition {
        nextState(State(results: state.results + [result]))
    }
}

/// A child with a result that its parent does not handle.
@ComposableEffectRunner(isBodyComposable: true)
struct Talking: StateMachine {
    struct State: Equatable, Sendable { var words: [String] = [] }
    enum Input: Sendable { case talk }
    enum IOEffect { case talk }
    enum IOResult: Equatable { case word(String), end }

    static func reduceInput(_ state: State, _ input: Input) -> Transition { run(.talk) }
    static func reduceIOResult(_ state: State, _ result: IOResult) -> Transition {
        guard case .word(let word) = result else { return undefined }
        return nextState(State(words: state.words + [word]))
    }

    func runTalk() -> IOResultStream {
        IOResultStream { continuation in
            continuation.yield(.word("a"))
            continuation.yield(.end)
            continuation.finish()
        }
    }
}

/// A parent without effects or results, with two children of one kind and one of another.
@ComposableEffectRunner(isBodyComposable: true)
struct Family: StateMachine {
    struct State: Equatable, Sendable {
        var first = Talking.State()
        var second = Talking.State()
        var scripted = Scripted.State()
        var received = 0
    }
    enum Input: Sendable { case reset }
    typealias IOEffect = Never
    typealias IOResult = Never
    enum Action: StateMachineEventConvertible {
        case input(Input)
        case ioResult(Never)
        case first(Talking.Action)
        case second(Talking.Action)
        case scripted(Scripted.Action)

        static func map(_ action: Self) -> StateMachineEvent<Input, Never>? {
            if case .input(let input) = action { .input(input) } else { nil }
        }
    }

    static func reduceInput(_ state: State, _ input: Input) -> Transition { nextState(State()) }

    var nestedBody: some Reducer<State, Action> {
        Scope(state: \.first, action: \.first) { Talking() }
        Scope(state: \.second, action: \.second) { Talking() }
        Scope(state: \.scripted, action: \.scripted) { Scripted() }
        Reduce { state, action in
            // One of two results is handled, the other is not.
            if case .second(.ioResult(.end)) = action { state.received += 1 }
            return .none
        }
    }
}

import StateMachines
import Synchronization
import Testing

// MARK: Handling effects and results

struct Update: Sendable, Equatable {
    let number: Int
}

struct Subscription: Sendable {
    let cancel: @Sendable () -> Void
}

struct UpdatesClient: DependencyKey {
    var fetchData: @Sendable () async -> String
    var observeUpdates: @Sendable (@escaping @Sendable (Update) -> Void) -> Subscription

    static let liveValue = UpdatesClient(
        fetchData: { "live" }, observeUpdates: { _ in Subscription(cancel: {}) })
}

final class Analytics: Sendable {
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }
    func log(_ line: String) { lines.withLock { $0.append(line) } }
}

extension DependencyValues {
    fileprivate var apiClient: UpdatesClient {
        get { self[UpdatesClient.self] }
        set { self[UpdatesClient.self] = newValue }
    }
}

private enum Handling {
    struct Feature: StateMachine {
        @Dependency(\.apiClient) var apiClient
        let analytics = Analytics()

        struct State: Equatable {
            var data: String?
            var updates: [Update] = []
        }
        enum Input { case fetch, subscribe, log }
        enum IOEffect { case fetchData, subscribeToUpdates, logAnalytics }
        @CasePathable
        enum IOResult: Equatable { case fetchResponse(String), update(Update) }

        static func reduceInput(_ state: State, _ input: Input) -> Transition {
            switch input {
            case .fetch: run(.fetchData)
            case .subscribe: run(.subscribeToUpdates)
            case .log: run(.logAnalytics)
            }
        }

        static func reduceIOResult(_ state: State, _ ioResult: IOResult) -> Transition {
            switch ioResult {
            case .fetchResponse(let data): nextState(State(data: data, updates: state.updates))
            case .update(let update): nextState(State(data: state.data, updates: state.updates + [update]))
            }
        }

        func runIOEffect(_ ioEffect: IOEffect) -> IOResultStream {
            switch ioEffect {
            case .fetchData:
                // Use the .single helper for one-shot operations
                return .single {
                    await .fetchResponse(apiClient.fetchData())
                }
            case .subscribeToUpdates:
                // Return a long-lived stream for subscriptions
                return IOResultStream { continuation in
                    let cancellable = apiClient.observeUpdates { result in
                        continuation.yield(.update(result))
                    }
                    continuation.onTermination = { _ in cancellable.cancel() }
                }
            case .logAnalytics:
                // For fire-and-forget effects, return an empty stream
                analytics.log("event")
                return .init { $0.finish() }
            }
        }
    }
}

@MainActor
@Suite struct StateMachineExamples {
    @Test("one-shot, long-lived and silent effects work, and a subscription ends with its store")
    func handlingEffects() async {
        let (cancelled, cancellation) = AsyncStream.makeStream(of: Void.self)
        let feature = Handling.Feature()
        let store = TestStore(initialState: Handling.Feature.State()) {
            feature
        } withDependencies: {
            $0.apiClient.fetchData = { "mocked" }
            $0.apiClient.observeUpdates = { observe in
                observe(Update(number: 1))
                observe(Update(number: 2))
                return Subscription { cancellation.finish() }
            }
        }
        await store.send(.input(.fetch))
        await store.receive(\.ioResult.fetchResponse) { $0.data = "mocked" }
        await store.send(.input(.subscribe))
        await store.receive(\.ioResult.update, Update(number: 1)) { $0.updates = [Update(number: 1)] }
        await store.receive(\.ioResult.update) { $0.updates.append(Update(number: 2)) }
        await store.skipInFlightEffects()
        for await _ in cancelled {}
        await store.send(.input(.log)).finish()
        #expect(feature.analytics.all == ["event"])
        await store.finish()
    }

    // MARK: Transition helpers

    @Test("the transition helpers give the state, the effect, both or neither")
    func transitionHelpers() {
        typealias Feature = Handling.Feature
        let state = Feature.State(data: "a")
        let undefined = Feature.undefined
        #expect(undefined.0 == nil && undefined.1 == nil)
        let identity = Feature.identity
        #expect(identity.0 == nil && identity.1 == nil)
        let next = Feature.nextState(state)
        #expect(next.0 == state && next.1 == nil)
        let effect = Feature.run(.fetchData)
        #expect(effect.0 == nil && effect.1 == .fetchData)
        let both = Feature.transition(state, .logAnalytics)
        #expect(both.0 == state && both.1 == .logAnalytics)
        var isLogged = false
        let logged = Feature.unsafe { isLogged = true }
        #expect(isLogged && logged.0 == nil && logged.1 == nil)
    }

    // MARK: Action mapping

    struct Mapped: StateMachine {
        struct State: Equatable {
            var child = ChildFeature.State()
            var taps = 0
            var appearances = 0
        }
        enum Input { case tap }
        typealias IOEffect = Never
        typealias IOResult = Never

        @CasePathable
        enum Action: StateMachineEventConvertible {
            // State machine events
            case input(Input)
            case ioResult(IOResult)
            // Other events
            case child(ChildFeature.Action)
            case onAppear

            static func map(_ action: Self) -> StateMachineEvent<Input, IOResult>? {
                switch action {
                case .input(let input): return .input(input)
                case .ioResult(let result): return .ioResult(result)
                default: return nil  // Other cases handled by a different reducer
                }
            }
        }

        static func reduceInput(_ state: State, _ input: Input) -> Transition {
            var state = state
            state.taps += 1
            return nextState(state)
        }

        var body: some Reducer<State, Action> {
            StateMachineReducer(machine: self)
            Scope(state: \.child, action: \.child) { ChildFeature() }
            Reduce { state, action in
                if case .onAppear = action { state.appearances += 1 }
                return .none
            }
        }
    }

    @Test("a machine selects its own events from a larger set of actions and ignores the others")
    func actionMapping() async {
        let store = TestStore(initialState: Mapped.State()) { Mapped() }
        await store.send(.input(.tap)) { $0.taps = 1 }
        await store.send(.child(.input(.load)))
        await store.receive(\.child.ioResult.success) { $0.child.names = ["Blob"] }
        await store.send(.onAppear) { $0.appearances = 1 }
    }
}

// MARK: Composing effects

private enum Composing {
    @ComposableEffect
    enum IOEffect: Equatable {
        case fetch(Int)
        case log(String)
    }

    struct Feature: StateMachine {
        struct State: Equatable {}
        enum Input { case buttonTapped, anotherButtonTapped }
        typealias IOEffect = Composing.IOEffect
        typealias IOResult = Never

        // In your reducer:
        static func reduceInput(_ state: State, _ input: Input) -> Transition {
            switch input {
            case .buttonTapped:
                // Run effects in parallel
                return run(.merge(.fetch(1), .log("fetching")))
            case .anotherButtonTapped:
                // Run effects sequentially
                return run(.concat(.log("step 1"), .log("step 2")))
            }
        }

        func runIOEffect(_ ioEffect: IOEffect) -> IOResultStream { .init { $0.finish() } }
    }
}

extension StateMachineExamples {
    @Test("effects are composed as values, which a test compares")
    func composedEffects() {
        let (_, merged) = Composing.Feature.reduceInput(.init(), .buttonTapped)
        #expect(merged == .merge([.fetch(1), .log("fetching")]))
        #expect(merged?.asComposableEffect() == .merge([.just(.fetch(1)), .just(.log("fetching"))]))
        let (_, sequence) = Composing.Feature.reduceInput(.init(), .anotherButtonTapped)
        #expect(sequence?.asComposableEffect() == .concat([.just(.log("step 1")), .just(.log("step 2"))]))
    }
}

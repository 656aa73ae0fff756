import StateMachines
import Testing

/// The examples were written for another testing library.
private func XCTAssertEqual<Value: Equatable>(
    _ left: Value, _ right: Value, sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(left == right, sourceLocation: sourceLocation)
}

struct APIClient: DependencyKey {
    var fetchData: @Sendable () async -> String

    static let liveValue = APIClient(fetchData: { "live data" })
    static let testValue = APIClient(fetchData: unimplemented("APIClient.fetchData", placeholder: ""))
}

extension DependencyValues {
    fileprivate var apiClient: APIClient {
        get { self[APIClient.self] }
        set { self[APIClient.self] = newValue }
    }
}

private struct Login: StateMachine {
    struct State: Equatable {
        var user = "user"
        var password = "pass"
        var isLoading = false
    }
    enum Input { case didTapLoginButton }
    enum IOEffect: Equatable { case authenticate(String, String) }
    typealias IOResult = Never

    static func reduceInput(_ state: State, _ input: Input) -> Transition {
        var next = state
        next.isLoading = true
        return transition(next, .authenticate(state.user, state.password))
    }

    func runIOEffect(_ ioEffect: IOEffect) -> IOResultStream { .init { $0.finish() } }
}

/// The examples name it `Feature`, a name that is already used here.
@ComposableEffectRunner
struct RunnerFeature: StateMachine {
    @Dependency(\.apiClient) var apiClient

    struct State: Equatable {
        var isLoading = false
        var data = ""
    }
    enum Input { case didTapButton }
    enum IOEffect { case fetchData }
    enum IOResult { case dataResponse(String) }

    static func reduceInput(_ state: State, _ input: Input) -> Transition {
        transition(State(isLoading: true, data: state.data), .fetchData)
    }

    static func reduceIOResult(_ state: State, _ ioResult: IOResult) -> Transition {
        switch ioResult {
        case .dataResponse(let data): nextState(State(isLoading: false, data: data))
        }
    }

    // EffectRunner conformance
    func runFetchData() -> IOResultStream {
        .single {
            await .dataResponse(self.apiClient.fetchData())
        }
    }
}

// MARK: Moving from one style to the other

private struct Before: Reducer {
    @Dependency(\.apiClient) var apiClient
    struct State: Equatable {
        var isLoading = false
        var data = ""
    }
    @CasePathable
    enum Action: Equatable { case buttonTapped, dataLoaded(String) }

    var body: some Reducer<State, Action> {
        Reduce { state, action in
            switch action {
            case .buttonTapped:
                state.isLoading = true
                return .run { send in
                    let result = await apiClient.fetchData()
                    await send(.dataLoaded(result))
                }
            case .dataLoaded(let data):
                state = State(isLoading: false, data: data)
                return .none
            }
        }
    }
}

@ComposableEffectRunner
struct After: StateMachine {
    @Dependency(\.apiClient) var apiClient
    struct State: Equatable {
        var isLoading = false
        var data = ""
    }
    enum Input { case buttonTapped }
    enum IOEffect { case fetchData }
    enum IOResult: Equatable { case dataLoaded(String) }

    // Reducer (Pure)
    static func reduceInput(_ state: State, _ input: Input) -> Transition {
        switch input {
        case .buttonTapped:
            return transition(.init(isLoading: true), .fetchData)
        }
    }

    static func reduceIOResult(_ state: State, _ ioResult: IOResult) -> Transition {
        switch ioResult {
        case .dataLoaded(let data): nextState(.init(data: data))
        }
    }

    // Effect Runner (Impure)
    func runFetchData() -> IOResultStream {
        .single {
            .dataLoaded(await apiClient.fetchData())
        }
    }
}

@Suite struct StateMachineExamplesTesting {
    @Test("a pure reducer is tested without a store")
    func testLoginInput() {
        // Test that the correct state change and effect are requested
        let (state, effect) = Login.reduceInput(.init(), .didTapLoginButton)
        XCTAssertEqual(state?.isLoading, true)
        XCTAssertEqual(effect, .authenticate("user", "pass"))
    }

    @MainActor
    @Test("a whole flow is tested with a feature whose effects are mocked")
    func testFullFlow() async {
        // Create a test-specific version of the feature for mocking effects
        struct TestFeature: StateMachine {
            struct State: Equatable {
                var isLoading = false
                var data = ""
            }
            enum Input { case didTapButton }
            enum IOEffect { case fetch, log }
            typealias IOResult = TaskResult<String>

            static func reduceInput(_ state: State, _ input: Input) -> Transition {
                transition(State(isLoading: true, data: state.data), .fetch)
            }

            static func reduceIOResult(_ state: State, _ ioResult: IOResult) -> Transition {
                nextState(State(isLoading: false, data: (try? ioResult.value) ?? ""))
            }

            // Override runIOEffect to return mock data
            func runIOEffect(_ ioEffect: IOEffect) -> IOResultStream {
                switch ioEffect {
                case .fetch:
                    return .single { .success("mock data") }
                default: return .init { $0.finish() }
                }
            }
        }

        let store = TestStore(initialState: TestFeature.State()) {
            TestFeature()
        }

        await store.send(.input(.didTapButton)) {
            $0.isLoading = true
        }
        await store.receive(\.ioResult.success) {
            $0.data = "mock data"
            $0.isLoading = false
        }
    }

    @MainActor
    @Test("the real effects are tested with a mocked dependency")
    func testFeatureWithRunner() async {
        typealias Feature = RunnerFeature
        let store = TestStore(initialState: Feature.State()) {
            Feature()
        } withDependencies: {
            // Override the dependency for this test
            $0.apiClient.fetchData = { "mocked data" }
        }

        await store.send(.input(.didTapButton)) {
            // State changes from the input
            $0.isLoading = true
        }

        // Assert that the IOResult from the mocked dependency
        // is received and causes the correct state change.
        await store.receive(\.ioResult.dataResponse) {
            $0.isLoading = false
            $0.data = "mocked data"
        }
    }

    @MainActor
    @Test("both styles behave alike")
    func migration() async {
        let before = TestStore(initialState: Before.State()) {
            Before()
        } withDependencies: {
            $0.apiClient.fetchData = { "data" }
        }
        await before.send(.buttonTapped) { $0.isLoading = true }
        await before.receive(.dataLoaded("data")) { $0 = .init(data: "data") }

        let after = TestStore(initialState: After.State()) {
            After()
        } withDependencies: {
            $0.apiClient.fetchData = { "data" }
        }
        await after.send(.input(.buttonTapped)) { $0.isLoading = true }
        await after.receive(\.ioResult.dataLoaded, "data") { $0 = .init(data: "data") }
    }
}

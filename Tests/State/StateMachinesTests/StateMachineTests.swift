import TestSupport
import Testing

@testable import StateMachines

/// A hand-written machine: a search that waits for its results, and drops late ones.
struct Search: StateMachine {
    struct Service: DependencyKey {
        var find: @Sendable (String) async throws -> [String]
        static let liveValue = Service { ["live \($0)"] }
        static let testValue = Service(find: unimplemented("Search.Service.find"))
    }

    struct State: Equatable, Sendable {
        var query = ""
        var phase = Phase.idle
    }
    enum Phase: Equatable, Sendable {
        case idle
        case searching
        case found([String])
        case failed
    }
    enum Input: Equatable { case type(String), submit, clear }
    enum IOEffect: Equatable { case find(String) }
    struct Answer: Equatable {
        let query: String
        let result: TaskResult<[String]>
    }
    typealias IOResult = Answer

    @Dependency(Service.self) var service

    static func reduceInput(_ state: State, _ input: Input) -> Transition {
        switch (state.phase, input) {
        case (_, .type(let query)): nextState(State(query: query, phase: state.phase))
        case (.searching, .submit): undefined
        case (_, .submit): transition(State(query: state.query, phase: .searching), .find(state.query))
        case (_, .clear): nextState(State())
        }
    }

    static func reduceIOResult(_ state: State, _ answer: Answer) -> Transition {
        guard state.phase == .searching, answer.query == state.query else { return undefined }
        return switch answer.result {
        case .success(let found): nextState(State(query: state.query, phase: .found(found)))
        case .failure: nextState(State(query: state.query, phase: .failed))
        }
    }

    func runIOEffect(_ effect: IOEffect) -> IOResultStream {
        switch effect {
        case .find(let query):
            .single { await Answer(query: query, result: TaskResult { try await service.find(query) }) }
        }
    }
}

@Suite("A state machine", .timeLimit(.minutes(5)))
struct StateMachineTests {
    @Test(
        "a state machine is a table of pure transitions",
        arguments: [
            (Search.Phase.idle, Search.Input.submit, Search.Phase?.some(.searching), Search.IOEffect?.some(.find("a"))),
            (.searching, .submit, nil, nil),
            (.found(["x"]), .submit, .searching, .find("a")),
            (.searching, .clear, .idle, nil),
            (.failed, .type("a"), .failed, nil),
        ])
    func inputs(phase: Search.Phase, input: Search.Input, next: Search.Phase?, effect: Search.IOEffect?) {
        let (state, found) = Search.reduceInput(.init(query: "a", phase: phase), input)
        #expect(state?.phase == next)
        #expect(found == effect)
    }

    @Test("a state machine drops a late result")
    func lateResults() {
        let answer = Search.Answer(query: "a", result: .success(["x"]))
        let waiting = Search.State(query: "a", phase: .searching)
        #expect(Search.reduceIOResult(waiting, answer).0 == .init(query: "a", phase: .found(["x"])))
        #expect(Search.reduceIOResult(.init(query: "b", phase: .searching), answer).0 == nil)
        #expect(Search.reduceIOResult(.init(query: "a", phase: .idle), answer).0 == nil)
        #expect(Search.reduce(waiting, .ioResult(answer)).0?.phase == .found(["x"]))
    }

    @MainActor
    @Test("a state machine runs in a test store")
    func inTestStore() async {
        struct Down: Error {}
        let store = TestStore(initialState: Search.State()) {
            Search()
        } withDependencies: {
            $0[Search.Service.self].find = { query in
                if query == "down" { throw Down() }
                return [query]
            }
        }
        await store.send(.input(.type("a"))) { $0.query = "a" }
        await store.send(.input(.submit)) { $0.phase = .searching }
        await store.receive(\.ioResult) { $0.phase = .found(["a"]) }
        await store.send(.input(.type("down"))) { $0.query = "down" }
        await store.send(.input(.submit)) { $0.phase = .searching }
        await store.receive(.ioResult(.init(query: "down", result: .failure(Down())))) { $0.phase = .failed }
        await store.send(.input(.clear)) { $0 = .init() }
    }

    @MainActor
    @Test("a state machine runs in a store")
    func inStore() async {
        let store = Store(initialState: Search.State(query: "a")) {
            Search()
        } withDependencies: {
            $0.context = .live
        }
        await store.send(.input(.submit)).finish()
        #expect(store.state.phase == .found(["live a"]))
    }

    @Test("a state machine runs in a host")
    func inHost() async {
        let host = ReducerHost(initialState: Search.State(query: "a")) {
            Search()
        } withDependencies: {
            $0[Search.Service.self].find = { ["hosted \($0)"] }
        }
        await host.send(.input(.submit)).finish()
        #expect(await host.state.phase == .found(["hosted a"]))
    }

    @Test("the streams of a machine's effects end with its host, and are notified")
    func endOfStreams() async {
        struct Watching: StateMachine {
            let recorder: Recorder
            struct State: Sendable { var values: [Int] = [] }
            enum Input { case watch }
            enum IOEffect { case watch }
            typealias IOResult = Int

            static func reduceInput(_ state: State, _ input: Input) -> Transition { run(.watch) }
            static func reduceIOResult(_ state: State, _ value: Int) -> Transition {
                nextState(State(values: state.values + [value]))
            }
            func runIOEffect(_ effect: IOEffect) -> IOResultStream {
                IOResultStream { continuation in
                    continuation.onTermination = { [recorder] _ in recorder.record("ended") }
                    continuation.yield(1)
                    continuation.yield(2)
                }
            }
        }
        let recorder = Recorder()
        var host: ReducerHostOf<Watching>? = ReducerHost(initialState: .init()) { Watching(recorder: recorder) }
        let task = await host?.send(.input(.watch))
        #expect(await eventually { await host?.state.values == [1, 2] }, "both values have arrived")
        #expect(recorder.entries == [])
        host = nil
        await task?.finish()
        #expect(await eventually { recorder.entries == ["ended"] }, "the stream was terminated")
    }

    @Test("a state machine needs neither effects nor results")
    func nothingToDo() async {
        struct Switch: StateMachine {
            struct State: Equatable, Sendable { var isOn = false }
            enum Input { case toggle }
            typealias IOEffect = Never
            typealias IOResult = Never

            static func reduceInput(_ state: State, _ input: Input) -> Transition {
                nextState(State(isOn: !state.isOn))
            }
        }
        let host = ReducerHost(initialState: Switch.State()) { Switch() }
        await host.send(.input(.toggle))
        #expect(await host.state.isOn)
    }

    @Test("single produces one result, and cancels its work when the stream is released")
    func single() async {
        var values: [Int] = []
        for await value in AsyncStream.single({ 7 }) { values.append(value) }
        #expect(values == [7])
        let recorder = Recorder()
        let reader = Task {
            let stream = AsyncStream.single {
                recorder.record("began")
                await untilCancelled()
                recorder.record("cancelled")
                return 1
            }
            for await _ in stream {}
        }
        #expect(await eventually { recorder.entries == ["began"] }, "it works")
        reader.cancel()
        #expect(await eventually { recorder.entries == ["began", "cancelled"] }, "the work is cancelled")
    }
}

import Testing

@testable import StateMachines

struct Clock: DependencyKey {
    var now: @Sendable () -> Int
    static let liveValue = Clock { 1 }
    static let testValue = Clock(now: unimplemented("Clock.now", placeholder: -1))
}

struct Mailer: DependencyKey {
    var send: @Sendable (String, Int) async throws -> Void
    static let liveValue = Mailer { _, _ in }
}

private enum CountedKey: DependencyKey {
    static let count = Recorder()
    static var liveValue: Int {
        count.record("made")
        return 7
    }
}

extension DependencyValues {
    var clock: Clock {
        get { self[Clock.self] }
        set { self[Clock.self] = newValue }
    }
    var mailer: Mailer {
        get { self[Mailer.self] }
        set { self[Mailer.self] = newValue }
    }
}

@MainActor
@Suite("Dependencies", .timeLimit(.minutes(5)))
struct DependencyTests {
    struct Feature: Reducer {
        @Dependency(\.clock) var clock
        @Dependency(\.mailer) var mailer
        struct State: Equatable { var times: [Int] = [] }
        @CasePathable
        enum Action: Equatable { case read, readLater, time(Int), mail }

        func reduce(into state: inout State, action: Action) -> Effect<Action> {
            switch action {
            case .read:
                state.times.append(clock.now())
                return .none
            case .readLater: return .run { await $0(.time(clock.now())) }
            case .time(let time):
                state.times.append(time)
                return .none
            case .mail: return .run { _ in try await mailer.send("a", 1) }
            }
        }
    }

    @Test("dependencies are replaced in a test store, for reducers and effects")
    func replaced() async {
        let store = TestStore(initialState: Feature.State()) {
            Feature()
        } withDependencies: {
            $0.clock.now = { 5 }
        }
        await store.send(.read) { $0.times = [5] }
        await store.send(.readLater)
        await store.receive(.time(5)) { $0.times = [5, 5] }
    }

    @Test("a dependency without a value fails the test that uses it", arguments: [Feature.Action.read, .readLater])
    func unimplementedFunction(action: Feature.Action) async {
        let reports = await issues {
            let store = TestStore(initialState: Feature.State()) { Feature() }
            store.exhaustivity = .off
            await store.send(action).finish()
        }
        #expect(reports == ["Unimplemented: Clock.now. Give it a value with 'withDependencies'."])
    }

    @Test("a dependency without a test value fails the test that uses it, unless it is replaced")
    func noTestValue() async {
        let reports = await issues {
            let store = TestStore(initialState: Feature.State()) { Feature() }
            await store.send(.mail).finish()
        }
        #expect(reports.count == 1)
        #expect(reports.first?.hasPrefix("The dependency Mailer has no test value, but a test uses it.") == true)
        let sent = Recorder()
        let quiet = await issues {
            let store = TestStore(initialState: Feature.State()) {
                Feature()
            } withDependencies: {
                $0.mailer.send = { text, number in sent.record("\(text)\(number)") }
            }
            await store.send(.mail).finish()
        }
        #expect(quiet == [])
        #expect(sent.entries == ["a1"])
    }

    @Test("a store without dependencies uses those in effect where its feature was created")
    func inherited() async {
        let made = withDependencies {
            $0.clock.now = { 3 }
        } operation: {
            Feature()
        }
        let store = Store(initialState: Feature.State()) { made }
        await store.send(.readLater).finish()
        #expect(store.withState(\.times) == [3])
        let other = Store(initialState: Feature.State()) {
            made
        } withDependencies: {
            $0.clock.now = { 4 }
        }
        other.send(.read)
        #expect(other.withState(\.times) == [4])
    }

    @Test("dependencies apply in the tasks that the work starts")
    func tasks() async {
        let value = await withDependencies {
            $0.clock.now = { 8 }
        } operation: {
            await Task { DependencyValues.current.clock.now() }.value
        }
        #expect(value == 8)
    }

    @Test("dependencies have their live value in a live context, created once")
    func live() {
        withDependencies {
            $0.context = .live
        } operation: {
            @Dependency(CountedKey.self) var made
            @Dependency(\.clock) var clock
            #expect(made == 7)
            #expect(made == 7)
            #expect(clock.now() == 1)
        }
        #expect(CountedKey.count.entries == ["made"])
        #expect(DependencyContext.ofProcess == .test)
    }

    @Test("an unimplemented throwing dependency throws")
    func throwing() async {
        let reports = await issues {
            let call: @Sendable (Int) throws -> String = unimplemented("API.call")
            #expect(throws: Unimplemented(name: "API.call")) { try call(1) }
        }
        #expect(reports.count == 1)
    }
}

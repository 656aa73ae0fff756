// swift-format-ignore-file
// The code of the guides of the state family, as on the pages: GuideSnippetTests compares them. It is compiled, but not run.
import Foundation
import QStream
import Relays
import SharedState
import StateMachines

private struct Todo: Codable, Sendable {
    var title: String

    init(_ title: String) { self.title = title }
}

@MainActor
private func share(_ file: URL, _ show: ([Todo]) -> Void) async {
    @Shared(.fileStorage(file)) var todos: [Todo] = []

    print(todos.count)
    $todos.withLock { $0.append(Todo("Write it down")) }

    for await todos in $todos.updates { show(todos) }
}

private func relay() {
    let temperature = StateRelay(20)

    Task {
        for await degrees in temperature.stream { print(degrees) }     // prints 21, and 20 before if the task starts first
    }

    temperature.update(21)
}

private func derive() async {
    let isConnected = Subject(value: false)
    let userName = Subject(value: "")
    var subscriptions: [AnySubscription] = []

    await isConnected.combineLatest(userName)
        .map { connected, name in connected ? "Online: \(name)" : "Offline" }
        .removeDuplicates()
        .tap { label in print(label) }          // "Offline"
        .store(in: &subscriptions)

    await isConnected.set(true)                 // "Online: "
    await userName.set("Alice")                 // "Online: Alice"
}

struct SearchService: Sendable {
    var find: @Sendable (String) async throws -> [String]
}

private enum SearchServiceKey: DependencyKey {
    static let liveValue = SearchService { [$0] }
}

extension DependencyValues {
    fileprivate var searchService: SearchService {
        get { self[SearchServiceKey.self] }
        set { self[SearchServiceKey.self] = newValue }
    }
}

@ComposableEffectRunner
private struct Search: StateMachine {
    struct State: Equatable { var query = "", results: [String] = [], isLoading = false }
    enum Input { case submit(String) }
    enum IOEffect { case find(String) }
    typealias IOResult = TaskResult<[String]>

    @Dependency(\.searchService) var service

    static func reduceInput(_ state: State, _ input: Input) -> Transition {
        switch input {
        case .submit(let query): transition(State(query: query, isLoading: true), .find(query))
        }
    }

    static func reduceIOResult(_ state: State, _ result: IOResult) -> Transition {
        nextState(State(query: state.query, results: (try? result.value) ?? []))
    }
}

extension Search: Search.EffectRunner {
    func runFind(_ query: String) -> IOResultStream {
        .single { await TaskResult { try await service.find(query) } }
    }
}

@MainActor
private func search() {
    let store = Store(initialState: Search.State()) { Search() }
    store.send(.input(.submit("tea")))          // isLoading is true; the results follow
}

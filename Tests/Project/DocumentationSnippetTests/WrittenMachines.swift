import StateMachines
import Testing

// The blocks of the guide to state machines, verbatim, where the other examples have further lines between them.

private struct Client: DependencyKey {
    var fetchData: @Sendable () async -> String = { "" }
    var observeUpdates: @Sendable (@escaping @Sendable (Int) -> Void) -> Cancellable = { _ in Cancellable() }
    static let liveValue = Client()
    static let testValue = Client()
}

private struct Cancellable: Sendable {
    func cancel() {}
}

private let analytics = Analytics()

extension DependencyValues {
    fileprivate var apiClient: Client { self[Client.self] }
}

private enum Handling {
    struct Feature: StateMachine {
        @Dependency(\.apiClient) var apiClient

        // ... State, Input, IOEffect, IOResult ...

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

/// Code that the guide omits.
extension Handling.Feature {
    struct State: Equatable {}
    enum Input { case tap }
    enum IOEffect { case fetchData, subscribeToUpdates, logAnalytics }
    enum IOResult: Equatable { case fetchResponse(String), update(Int) }
    fileprivate static func reduceInput(_ state: State, _ input: Input) -> Transition { run(.fetchData) }
    fileprivate static func reduceIOResult(_ state: State, _ ioResult: IOResult) -> Transition { nextState(state) }
}

private struct Composing: StateMachine {
    struct State: Equatable {}
    enum Input { case buttonTapped, anotherButtonTapped }
    typealias IOResult = Never

    @ComposableEffect
    enum IOEffect {
        case fetch(Int)
        case log(String)
    }

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

@Suite struct WrittenMachines {
    @Test("the guide's blocks compile and run verbatim")
    func blocks() async {
        let feature = Handling.Feature()
        var results: [Handling.Feature.IOResult] = []
        for await result in feature.runIOEffect(.fetchData) { results.append(result) }
        #expect(results == [.fetchResponse("")])
        let (_, merged) = Composing.reduceInput(.init(), .buttonTapped)
        let (_, sequence) = Composing.reduceInput(.init(), .anotherButtonTapped)
        guard case .merge = merged, case .concat = sequence else {
            Issue.record("an effect does not consist of several effects")
            return
        }
    }
}

import Foundation
import Loading
import Observation
import Relays
import Testing

// The examples of the guide to the state relay, verbatim; code that the guide omits is beside them.

/// The relay as the guide shows it: code written for it must work with the one of `Relays`.
private enum Guide {
    @MainActor
    final class StateRelay<Value: Sendable> {
        private var continuations: [UUID: AsyncStream<Value>.Continuation] = [:]
        private(set) var currentValue: Value

        init(_ initial: Value) {
            self.currentValue = initial
        }

        var stream: AsyncStream<Value> {
            AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
                let id = UUID()
                continuations[id] = continuation

                // Key: Immediately replay current value
                continuation.yield(currentValue)

                continuation.onTermination = { @Sendable [weak self] _ in
                    Task { @MainActor in
                        self?.continuations[id] = nil
                    }
                }
            }
        }

        func update(_ newValue: Value) {
            currentValue = newValue
            for continuation in continuations.values {
                continuation.yield(newValue)
            }
        }
    }

    /// The guide's loader, with the omitted part: one load that takes its value from a closure.
    @Observable
    @MainActor
    open class BaseLoadable<Value: Hashable & Sendable>: Loadable {
        // State relay that maintains current state and supports multiple observers
        @ObservationIgnored private let stateRelay = Relays.StateRelay<LoadingState<Value>>(.idle)

        /// The current loading state - can be read synchronously
        public var currentState: LoadingState<Value> {
            stateRelay.currentValue
        }

        /// An async sequence of state changes - replays current value to new observers
        public var state: any AsyncSequence<LoadingState<Value>, Never> {
            stateRelay.stream
        }

        /// Updates the loading state. Used by subclasses that need custom state updates.
        public func updateState(_ state: LoadingState<Value>) {
            stateRelay.update(state)
        }

        @ObservationIgnored private let fetch: () async -> Value
        public private(set) var isCanceled = false

        public init(_ fetch: @escaping () async -> Value) { self.fetch = fetch }

        public func cancel() { isCanceled = true }

        public func reset() {
            isCanceled = false
            updateState(.idle)
        }

        public func load() async {
            updateState(.loading(nil))
            updateState(.loaded(await fetch()))
        }
    }
}

/// The guide's onAppear code of a view.
@MainActor
private struct Screen<L: Loadable> {
    let loader: L
    var loadingState: LoadingState<L.Value> = .idle

    mutating func onAppear() {
        // Sync with loader's current state
        if let baseLoader = loader as? BaseLoadable<L.Value> {
            let currentState = baseLoader.currentState
            if loadingState != currentState {
                loadingState = currentState
            }
        }
    }
}

#if canImport(SwiftUI)
    import SwiftUI

    /// The view that the guide describes.
    private struct ProfileScreen: View {
        let loader: BlockLoadable<String>

        var body: some View {
            LoadingView(loader: loader) { Text($0) }
                .emptyView { Text("No data") }
                .progressView { Text($0?.message ?? "Loading") }
                .errorView { Text("\($0)") }
        }
    }
#endif

/// A relay of the guide or of the package, as code on the main actor sees it.
@MainActor
private protocol AnyStateRelay<Value> {
    associatedtype Value: Sendable
    associatedtype Values: AsyncSequence<Value, Never>

    var currentValue: Value { get }
    var stream: Values { get }
    func update(_ newValue: Value)
}

extension Guide.StateRelay: AnyStateRelay {}
extension StateRelay: AnyStateRelay {}

@Suite(.timeLimit(.minutes(5))) @MainActor struct LoadingExamples {
    private func use(_ relay: some AnyStateRelay<Int>) async -> [Int] {
        var seen: [Int] = []
        var first = relay.stream.makeAsyncIterator()
        if let value = await first.next(isolation: #isolation) { seen.append(value) }
        relay.update(1)
        relay.update(2)
        if let value = await first.next(isolation: #isolation) { seen.append(value) }
        var second = relay.stream.makeAsyncIterator()
        if let value = await second.next(isolation: #isolation) { seen.append(value) }
        relay.update(3)
        if let value = await first.next(isolation: #isolation) { seen.append(value) }
        if let value = await second.next(isolation: #isolation) { seen.append(value) }
        return seen + [relay.currentValue]
    }

    @Test("the guide's relay and the package's behave alike for code on the main actor")
    func relays() async {
        let seen = await use(StateRelay(0))
        #expect(seen == [0, 2, 2, 3, 3, 3])
        #expect(await use(Guide.StateRelay(0)) == seen)
    }

    @Test("the guide's loader works over the relay, alone and wrapped")
    func guideLoader() async {
        let loader = Guide.BaseLoadable { 5 }
        let retrying = RetryableLoader(wrapping: loader)
        await retrying.load()
        #expect(loader.currentState == .loaded(5))
        #expect(retrying.currentState == .loaded(5))
        for await state in loader.state {
            #expect(state == .loaded(5), "a new observer begins with the current state")
            break
        }
    }

    @Test("a view that reappears is in step with the loader at once")
    func onAppear() async {
        let loader = BlockLoadable { "profile" }
        var screen = Screen(loader: loader)
        screen.onAppear()
        #expect(screen.loadingState == .idle)
        await loader.load()
        screen.onAppear()
        #expect(screen.loadingState == .loaded("profile"))
    }
}

internal import Platform
internal import Relays
import Synchronization

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Runs a reducer in a test that asserts each action.
///
///     let store = TestStore(initialState: Feature.State()) {
///         Feature()
///     } withDependencies: {
///         $0.apiClient.fetch = { "mocked" }
///     }
///     await store.send(.input(.tap)) { $0.isLoading = true }
///     await store.receive(\.ioResult.success) { $0 = .init(data: "mocked") }
///
/// The closures change the state before the action into the state expected after it. Unless ``exhaustivity`` is off,
/// the test fails on a change without an assertion, on an unreceived action of an effect, and on an effect
/// that still runs when the test store is released.
@MainActor
public final class TestStore<State, Action: Sendable> {
    /// The state after the last asserted action; inside an asserting closure, the state before that action.
    public internal(set) var state: State
    /// The maximum time to wait for an action or the end of effects, while effects run: five seconds.
    public var timeout: Duration = .seconds(5)
    /// The strictness of the test; by default everything must be asserted.
    public var exhaustivity: Exhaustivity {
        get { counts.exhaustivity.withLock { $0 } }
        set { counts.exhaustivity.withLock { $0 = newValue } }
    }

    /// The dependencies of the reducer and of the asserting closures. A change applies to later actions and their
    /// effects.
    public var dependencies: DependencyValues {
        get { machine.dependencies }
        set { machine.dependencies = newValue }
    }

    /// The state after all actions, asserted or not.
    private var current: State
    private let machine: EmbeddedReducer<State, Action>
    /// The time that the store waits, at its release, for effects that are almost done.
    var releaseTimeout: Duration = .milliseconds(100)
    /// The number of the action that led to ``state``.
    private var stateNumber: UInt64 = 0
    let assertions: PendingAssertions<State, Action>
    let signal: ChangeSignal
    private let areEqual: (State, State) -> Bool
    nonisolated let counts: PendingAssertionCounts<Action>
    nonisolated let effects: EffectTasks<Action>

    /// Creates a test store.
    ///
    /// - Parameter prepare: replaces dependencies; the others have their test values.
    public init<R: Reducer>(
        initialState: @autoclosure () -> State, @ReducerBuilder<State, Action> reducer: () -> R,
        withDependencies prepare: (inout DependencyValues) -> Void = { _ in },
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) where R.State == State, R.Action == Action, State: Equatable {
        let values = DependencyValues.current.keepingTestValues().changed {
            $0.context = .test
            prepare(&$0)
        }
        let (state, reducer) = DependencyValues.$current.withValue(values) { (initialState(), reducer()) }
        let counts = PendingAssertionCounts<Action>(at: CodeLocation(fileID, filePath, line, column))
        let assertions = PendingAssertions<State, Action>(counts)
        let signal = ChangeSignal()
        self.state = state
        current = state
        self.counts = counts
        self.assertions = assertions
        self.signal = signal
        areEqual = { $0 == $1 }
        machine = EmbeddedReducer(
            dependencies: values, onEffectEnd: { signal.fire() }, effectsOn: EffectExecutor()
        ) { state, action in
            let before = state
            let shared = SharedChanges()
            let effect = shared.recordChanges { reducer.reduce(into: &state, action: action) }
            assertions.recordAction(action, from: before, to: state, shared)
            return effect
        }
        effects = machine.effects
    }

    deinit {
        let exhaustivity = counts.exhaustivity.withLock { $0 }
        guard exhaustivity != .off else { return }
        let running = Self.origins(of: effects, within: releaseTimeout)
        // Read after the wait, in which effects may have sent actions.
        let actions = counts.actions.withLock { $0 }
        let location = counts.location
        if !actions.isEmpty { exhaustivity.report(Self.unreceived(actions, "but the test has ended"), at: location) }
        if !running.isEmpty { exhaustivity.report(Self.unfinished(running, "when the test ended"), at: location) }
    }

    /// Returns the actions whose effects do not end within a time for those that are almost done.
    ///
    /// An effect whose last action the test has received may be about to end. This method cannot suspend, so such an
    /// effect would not get the main actor here: ``runRemainingWork(_:)`` has let it continue before.
    nonisolated private static func origins(of effects: EffectTasks<Action>, within timeout: Duration) -> [Action] {
        var patience = Patience(timeout)
        while !effects.origins.isEmpty, !patience.isExhausted() { usleep(1000) }
        return effects.origins
    }

    /// Sends an action, and checks the resulting change of state.
    ///
    /// It returns when each effect has ended or waits: actions that effects send without waiting have been sent by
    /// then.
    ///
    /// - Parameter update: changes the state before the action into the expected state after it. Without it the state
    ///   must not change.
    @discardableResult
    public func send(
        _ action: Action, assert update: ((inout State) throws -> Void)? = nil,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) async -> TestStoreTask {
        await send(action, assert: update, at: CodeLocation(fileID, filePath, line, column))
    }

    func send(
        _ action: Action, assert update: ((inout State) throws -> Void)?, at location: CodeLocation
    ) async -> TestStoreTask {
        counts.setLocation(location)
        if !assertions.received.isEmpty {
            // With full exhaustivity they stay, to be received after this one: one report is enough.
            let actions = assertions.takeUnreported()
            if !actions.isEmpty {
                exhaustivity.report(Self.unreceived(actions, "before another action is sent"), at: location)
            }
            if exhaustivity != .on { skipAllReceived() }
        }
        assertions.beginSending()
        let task = machine.send(action, to: &current, in: nil) { deliver }
        if let sent = assertions.sent { check(sent, against: update, at: location) }
        await effects.executor?.waitUntilIdle()
        return TestStoreTask(task, timeout)
    }

    /// Checks the current state against the result of `update`.
    public func assert(
        _ update: (inout State) throws -> Void,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) {
        let location = CodeLocation(fileID, filePath, line, column)
        counts.setLocation(location)
        var expected = state
        let shared = SharedChanges()
        do { try run(update, &expected, shared) } catch {
            return reportIssue("The assertion threw: \(error)", at: location)
        }
        let difference = difference(expected, state, shared.differences)
        if let difference { reportIssue("The state is not as expected:\n\n\(difference)", at: location) }
    }

    func skipAllReceived() {
        if let last = assertions.removeFirst(assertions.received.count) { advance(to: last) }
    }

    /// Continues from the state after an action, unless the test is already further.
    func advance(to entry: PendingAssertions<State, Action>.Entry) {
        guard entry.number > stateNumber else { return }
        stateNumber = entry.number
        state = entry.state
    }

    /// Runs an asserting closure in the environment of the reducer: with the dependencies of the store. Its changes to
    /// shared values are only recorded.
    private func run(
        _ assertion: (inout State) throws -> Void, _ value: inout State, _ shared: SharedChanges
    ) throws {
        try DependencyValues.$current.withValue(dependencies) { try shared.assertChanges { try assertion(&value) } }
    }

    /// Returns nil if there is no difference.
    private func difference(_ expected: State, _ actual: State, _ shared: [String]) -> String? {
        let texts = (areEqual(expected, actual) ? [] : [Self.difference(expected, actual)]) + shared
        return texts.isEmpty ? nil : texts.joined(separator: "\n\n")
    }

    private var deliver: Deliver<Action> {
        { [weak self, counts] action, lifetime in
            if let self { return await self.receive(action, lifetime) }
            // During the release of the store, which reports actions that were not received.
            if !lifetime.isOver { counts.actions.withLock { $0.append(action) } }
            return nil
        }
    }

    /// Receives an action of an effect.
    ///
    /// - Returns: a closure to call when the effect continues.
    private func receive(_ action: Action, _ lifetime: EffectLifetime) -> (@Sendable () -> Void)? {
        // Checked here: it may have been cancelled on the way.
        if lifetime.isOver { return nil }
        let number = assertions.nextNumber
        counts.sending.withLock { _ = $0.insert(number) }
        _ = machine.send(action, to: &current, in: lifetime.group) { deliver }
        signal.fire()
        return { [counts, signal] in
            counts.sending.withLock { _ = $0.remove(number) }
            signal.fire()
        }
    }

    /// Compares the state after an action with the expected one, and continues from it.
    func check(
        _ entry: PendingAssertions<State, Action>.Entry, against update: ((inout State) throws -> Void)?,
        at location: CodeLocation
    ) {
        let (before, actual) = (entry.before, entry.state)
        defer { advance(to: entry) }
        let summary = {
            let text = ValueText.summary(of: entry.action)
            return text == "()" ? "The action" : text
        }
        guard let update else {
            if exhaustivity != .off, let difference = difference(before, actual, entry.shared.changes) {
                exhaustivity.report(
                    "The state was not expected to change, but \(summary()) changed it:\n\n" + difference, at: location)
            }
            return
        }
        // Without exhaustivity a test asserts only some of the changes: they must have happened, whatever the others
        // are.
        var expected = exhaustivity == .on ? before : actual
        let shared = entry.shared.copy(fromEnd: exhaustivity != .on)
        do { try run(update, &expected, shared) } catch {
            return reportIssue("The assertion threw: \(error)", at: location)
        }
        if let difference = difference(expected, actual, shared.differences) {
            reportIssue("\(summary()) did not change the state as expected:\n\n" + difference, at: location)
        } else if exhaustivity == .on, areEqual(expected, before), !shared.isExpectingChange {
            reportIssue(
                "A change of the state was expected after \(summary()), but there was none. "
                    + "Remove the closure if no change is expected.", at: location)
        } else if exhaustivity == .off(showSkippedAssertions: true) {
            showUnnamedChanges(of: entry, update, at: location)
        }
    }

    /// Shows the changes that a test has not asserted.
    private func showUnnamedChanges(
        of entry: PendingAssertions<State, Action>.Entry, _ update: ((inout State) throws -> Void),
        at location: CodeLocation
    ) {
        var named = entry.before
        let shared = entry.shared.copy(fromEnd: false)
        // An error of the closure in a state that it was not written for is ignored.
        guard (try? run(update, &named, shared)) != nil,
            let difference = difference(named, entry.state, shared.differences)
        else { return }
        exhaustivity.report("Changes of the state were not asserted:\n\n" + difference, at: location)
    }
}

/// The test store of a reducer.
public typealias TestStoreOf<R: Reducer> = TestStore<R.State, R.Action>

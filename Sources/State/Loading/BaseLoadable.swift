public import Observation

/// A loader whose subclass overrides ``fetch()``.
///
///     final class ProfileLoader: BaseLoadable<Profile> {
///         override func fetch() async throws -> Profile { try await service.profile() }
///     }
///
/// - A newer `load()` wins: the outcome and progress of an older one are dropped.
/// - `load()` returns when its fetch has ended. Cancellation of the calling task cancels the fetch, and the state
///   returns to idle, unless the fetch yields a value nevertheless.
/// - `cancel()` cancels the running work and publishes idle at once. An existing outcome stays. It lasts until
///   `reset()`, which removes the outcome too.
/// - A `CancellationError` of the fetch is not a failure: the state returns to idle.
@Observable
@MainActor
open class BaseLoadable<Value: Hashable & Sendable>: Loadable {
    @ObservationIgnored private let store = LoadingStateStore<Value>()
    /// The load whose outcome is published.
    @ObservationIgnored private var newest: LoadOperation?
    /// Loads whose work has not ended, including outdated ones.
    @ObservationIgnored private var running: [LoadOperation] = []
    @ObservationIgnored private var observers: [UInt64: (LoadingState<Value>) -> Void] = [:]
    @ObservationIgnored private var lastObserver: UInt64 = 0
    /// States that the followers have not received.
    @ObservationIgnored private var pendingNotifications: [LoadingState<Value>] = []
    @ObservationIgnored private var isNotifying = false

    /// A Boolean value that indicates whether `cancel()` was called since the last ``reset()``. If so, ``load()`` does
    /// nothing.
    public private(set) var isCanceled = false

    /// Creates an idle loader. Loading begins with ``load()``.
    public init() {}

    deinit { store.finish() }

    /// The newest state; observable.
    public var currentState: LoadingState<Value> {
        access(keyPath: \.currentState)
        return store.current
    }

    /// The current state, then every change, equal for all readers; see ``LoadingStates``.
    public var state: any AsyncSequence<LoadingState<Value>, Never> { LoadingStates(store: store) }

    /// Produces the value. Runs on the main actor, in a separate task for each load.
    open func fetch() async throws -> Value {
        preconditionFailure("\(type(of: self)) must override fetch()")
    }

    /// Publishes a state, usually the progress of a fetch. A state equal to the current one is not published again.
    ///
    /// Does nothing when called by a fetch that was cancelled or outdated by a newer load.
    public func updateState(_ state: LoadingState<Value>) {
        if let run = LoadOperation.current, run.belongs(to: self), !run.isCurrent { return }
        publish(state)
    }

    /// Fetches the value. Returns when that fetch has ended, even if a newer load has outdated it. Does nothing after
    /// ``cancel()``.
    open func load() async {
        guard !isCanceled else { return }
        await startRun().waitUntilFinished()
    }

    /// Cancels the running work and publishes idle at once. An existing outcome stays. Lasts until ``reset()``.
    open func cancel() {
        isCanceled = true
        abandonWork()
        if store.current.isLoading { publish(.idle) }
    }

    /// Cancels the running work, removes the outcome, publishes idle, and enables ``load()`` again.
    open func reset() {
        isCanceled = false
        abandonWork()
        publish(.idle)
    }

    // MARK: For the wrappers of this module

    var isWorking: Bool { newest != nil }

    /// Called when a load begins or ends, or was abandoned.
    func workChanged() {}

    /// Begins a load, which outdates the previous one.
    func startRun() -> LoadOperation {
        newest?.becomeOutdated()
        let run = LoadOperation(of: self) { run in await self.perform(run) }
        newest = run
        running.append(run)
        publish(.loading(nil))
        workChanged()
        return run
    }

    /// Cancels the work of all loads, or of the outdated ones.
    func stopWork(outdatedOnly: Bool = false) {
        for run in running where !outdatedOnly || !run.isCurrent { run.stop() }
    }

    /// Calls `observer` on each change, before other code runs on the main actor.
    func addObserver(_ observer: @escaping (LoadingState<Value>) -> Void) -> UInt64 {
        lastObserver += 1
        observers[lastObserver] = observer
        return lastObserver
    }

    func removeObserver(_ number: UInt64) { observers[number] = nil }

    // MARK: Implementation

    private func perform(_ run: LoadOperation) async {
        let outcome: LoadingState<Value>
        do {
            outcome = .loaded(try await fetch())
        } catch {
            outcome = error is CancellationError || Task.isCancelled ? .idle : .failure(error)
        }
        running.removeAll { $0 === run }
        guard run.isCurrent else { return }
        run.becomeOutdated()
        newest = nil
        publish(outcome)
        workChanged()
    }

    private func abandonWork() {
        newest?.becomeOutdated()
        newest = nil
        stopWork()
        workChanged()
    }

    private func publish(_ state: LoadingState<Value>) {
        guard state != store.current else { return }
        store.publish(state)
        // Observers and followers may change the loader in turn. So they are notified after the state is stored, and
        // of each state in order.
        pendingNotifications.append(state)
        withMutation(keyPath: \.currentState) {}
        guard !isNotifying else { return }
        isNotifying = true
        while !pendingNotifications.isEmpty {
            let next = pendingNotifications.removeFirst()
            for observer in observers.values { observer(next) }
        }
        isNotifying = false
    }
}

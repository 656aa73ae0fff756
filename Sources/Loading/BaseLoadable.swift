public import Observation

/// A loader whose subclass says how: override ``fetch()``.
///
///     final class ProfileLoader: BaseLoadable<Profile> {
///         override func fetch() async throws -> Profile { try await service.profile() }
///     }
///
/// - A newer `load()` wins: what an older one comes to is dropped, and so is its progress.
/// - `load()` returns when its fetch has ended. When the calling task is cancelled the fetch is, and the state goes
///   back to idle, unless the fetch comes to a value nevertheless.
/// - `cancel()` cancels what is under way and publishes idle at once; an outcome that is there already stays.
///   It lasts until `reset()`, which forgets the outcome too.
/// - A `CancellationError` of the fetch is no failure: the state goes back to idle.
@Observable
@MainActor
open class BaseLoadable<Value: Hashable & Sendable>: Loadable {
    @ObservationIgnored private let store = LoadingStateStore<Value>()
    /// The load whose outcome counts.
    @ObservationIgnored private var newest: LoadRun?
    /// Loads whose work has not ended, also those whose outcome does not count.
    @ObservationIgnored private var running: [LoadRun] = []
    @ObservationIgnored private var followers: [UInt64: (LoadingState<Value>) -> Void] = [:]
    @ObservationIgnored private var lastFollower: UInt64 = 0
    /// States that followers have not been told of.
    @ObservationIgnored private var untold: [LoadingState<Value>] = []
    @ObservationIgnored private var isTelling = false

    /// Whether `cancel()` was called since the last ``reset()``: until then ``load()`` does nothing.
    public private(set) var isCanceled = false

    /// Idle. Nothing is loaded before ``load()``.
    public init() {}

    deinit { store.finish() }

    /// The newest state; observable.
    public var currentState: LoadingState<Value> {
        access(keyPath: \.currentState)
        return store.current
    }

    /// The current state, then every change, the same for all readers; see ``LoadingStates``.
    public var state: any AsyncSequence<LoadingState<Value>, Never> { LoadingStates(store: store) }

    /// Produces the value. Runs on the main actor, in a task of its own for each load.
    open func fetch() async throws -> Value {
        preconditionFailure("\(type(of: self)) must override fetch()")
    }

    /// Publishes a state, as a rule the progress of a fetch. A state equal to the current one is not published again.
    ///
    /// Does nothing when it is called by a fetch that was cancelled or that a newer load has outdated.
    public func updateState(_ state: LoadingState<Value>) {
        if let run = LoadRun.current, run.belongs(to: self), !run.isCurrent { return }
        publish(state)
    }

    /// Fetches, and returns when that fetch has ended, also when a newer load has outdated it. Does nothing after
    /// ``cancel()``.
    open func load() async {
        guard !isCanceled else { return }
        await startRun().end()
    }

    /// Cancels what is under way and publishes idle at once; an outcome that is there stays. Lasts until ``reset()``.
    open func cancel() {
        isCanceled = true
        abandonWork()
        if store.current.isLoading { publish(.idle) }
    }

    /// Cancels what is under way, forgets the outcome, publishes idle, and lets ``load()`` work again.
    open func reset() {
        isCanceled = false
        abandonWork()
        publish(.idle)
    }

    // MARK: For the wrappers of this module

    var isWorking: Bool { newest != nil }

    /// Called when a load begins or ends, or was abandoned.
    func workChanged() {}

    /// Begins a load, which outdates the one before.
    func startRun() -> LoadRun {
        newest?.becomeOutdated()
        let run = LoadRun(of: self) { run in await self.perform(run) }
        newest = run
        running.append(run)
        publish(.loading(nil))
        workChanged()
        return run
    }

    /// Cancels the work of all loads, or of those whose outcome does not count.
    func stopWork(outdatedOnly: Bool = false) {
        for run in running where !outdatedOnly || !run.isCurrent { run.stop() }
    }

    /// Calls `follower` on each change, before anything else can happen on the main actor.
    func follow(_ follower: @escaping (LoadingState<Value>) -> Void) -> UInt64 {
        lastFollower += 1
        followers[lastFollower] = follower
        return lastFollower
    }

    func unfollow(_ number: UInt64) { followers[number] = nil }

    // MARK: Inside

    private func perform(_ run: LoadRun) async {
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
        // Observers and followers may change the loader in turn. So they are told once the state is there, and of each state
        // after the one before.
        untold.append(state)
        withMutation(keyPath: \.currentState) {}
        guard !isTelling else { return }
        isTelling = true
        while !untold.isEmpty {
            let next = untold.removeFirst()
            for follower in followers.values { follower(next) }
        }
        isTelling = false
    }
}

import Synchronization

/// One cancellable part of an effect, from its return by the reducer until its end.
final class EffectRegistration: Sendable {
    /// The progress of the registered part.
    private enum State {
        case waiting
        case running(@Sendable () -> Void)
        case cancelled
    }

    /// The state and its marks, under the lock.
    private struct Contents {
        var state = State.waiting
        var flags: [CancellationFlag] = []
    }

    let id: EffectID
    let position: EffectPosition
    private let contents = Mutex(Contents())

    init(id: EffectID, position: EffectPosition) {
        self.id = id
        self.position = position
    }

    /// Adds a mark that the cancellation sets.
    func addFlag(_ flag: CancellationFlag) { contents.withLock { $0.flags.append(flag) } }

    /// Starts the work, unless it was cancelled while it waited.
    func start(
        on executor: EffectExecutor?, priority: TaskPriority?, _ work: @escaping @Sendable () async -> Void
    ) -> Task<Void, Never>? {
        contents.withLock { contents in
            guard case .waiting = contents.state else { return nil }
            let task = startTask(on: executor, priority: priority, work)
            contents.state = .running { task.cancel() }
            return task
        }
    }

    /// Starts work that must run even when cancelled.
    func run<Result: Sendable>(
        on executor: EffectExecutor?, _ work: @escaping @Sendable () async -> Result
    ) -> Task<Result, Never> {
        let (task, isCancelled) = contents.withLock { contents in
            // Under the lock, so that the work finds itself registered.
            let task = startTask(on: executor, work)
            guard case .waiting = contents.state else { return (task, true) }
            contents.state = .running { task.cancel() }
            return (task, false)
        }
        if isCancelled { task.cancel() }
        return task
    }

    func cancel() {
        let (cancel, flags) = contents.withLock { contents -> ((@Sendable () -> Void)?, [CancellationFlag]) in
            defer { contents.state = .cancelled }
            if case .running(let cancel) = contents.state { return (cancel, contents.flags) }
            return (nil, contents.flags)
        }
        for flag in flags { flag.set() }
        // Outside the lock: this runs the cancellation handlers of the work.
        cancel?()
    }
}

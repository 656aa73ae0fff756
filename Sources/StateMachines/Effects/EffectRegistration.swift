import Synchronization

/// One cancellable part of an effect, from the moment it is returned until it has ended.
final class EffectRegistration: Sendable {
    private enum State {
        case waiting
        case running(@Sendable () -> Void)
        case cancelled
    }

    private struct Contents {
        var state = State.waiting
        var marks: [CancellationMark] = []
    }

    let id: EffectID
    let position: EffectPosition
    private let contents = Mutex(Contents())

    init(id: EffectID, position: EffectPosition) {
        self.id = id
        self.position = position
    }

    /// Sets a mark, too, when it is cancelled.
    func add(_ mark: CancellationMark) { contents.withLock { $0.marks.append(mark) } }

    /// Begins the work, unless it was cancelled while it waited.
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

    /// Begins work that has to run, cancelled or not.
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
        let (cancel, marks) = contents.withLock { contents -> ((@Sendable () -> Void)?, [CancellationMark]) in
            defer { contents.state = .cancelled }
            if case .running(let cancel) = contents.state { return (cancel, contents.marks) }
            return (nil, contents.marks)
        }
        for mark in marks { mark.set() }
        // Outside of the lock: this runs the cancellation handlers of the work.
        cancel?()
    }
}

import Synchronization

/// The tasks that come from one `send`: those of its effects, and of the actions which these send.
final class EffectGroup: Sendable {
    /// The group of the effect that runs in the current task.
    @TaskLocal static var current: EffectGroup?

    private struct Contents {
        var tasks: [UInt64: Task<Void, Never>] = [:]
        var isCancelled = false
    }

    /// The effects of the host: they tell the groups of one from those of another.
    let registry: any EffectRegistry
    var owner: ObjectIdentifier { ObjectIdentifier(registry) }
    private let contents = Mutex(Contents())

    init(of registry: any EffectRegistry) { self.registry = registry }

    /// - Returns: whether the group is cancelled; the caller cancels the task once it holds no lock.
    func add(_ task: Task<Void, Never>, _ number: UInt64) -> Bool {
        contents.withLock { contents in
            contents.tasks[number] = task
            return contents.isCancelled
        }
    }

    func remove(_ number: UInt64) {
        _ = contents.withLock { $0.tasks.removeValue(forKey: number) }
    }

    func cancel() {
        let tasks = contents.withLock { contents in
            contents.isCancelled = true
            return Array(contents.tasks.values)
        }
        for task in tasks { task.cancel() }
    }

    /// Returns when no task is left. A task's followers are added before it ends, so none is missed.
    func finish() async {
        while let task = contents.withLock({ $0.tasks.first?.value }) { await task.value }
    }
}

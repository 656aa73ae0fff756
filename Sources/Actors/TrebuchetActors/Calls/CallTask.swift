/// A call in progress whose task can be cancelled.
package protocol CancellableCall: AnyObject, Sendable {
    /// The deadline in nanoseconds of the monotonic clock.
    var machineDeadline: UInt64 { get }
    /// Sets the task of the call. If the call was cancelled already, the task is cancelled immediately.
    func run(in task: Task<Void, Never>)
}

/// Starts the tasks of calls.
package enum CallTask {
    /// Runs `operation` in a task. `completion` is called on the actor's reactor, or on the pool thread where the operation
    /// ends.
    package static func start(
        _ record: ActorRecord, _ operation: @escaping CallOperation, _ call: some CancellableCall,
        _ completion: @escaping CallCompletion
    ) {
        let deadline = call.machineDeadline
        let task: Task<Void, Never>
        // `immediate` queues the task on the executor before this method returns, so calls keep their order. The task has no
        // executor preference: awaited code that does not belong to the reactor runs on the pool.
        if let home = record.home {
            record.actorInstance.didStart()
            let isolation = home.isolation
            task = Task.immediate { await isolation.run(operation, until: deadline, completion) }
        } else {
            task = Task.immediate { completion(await outcome(of: operation, until: deadline, isolation: nil)) }
        }
        call.run(in: task)
    }

    static func outcome(
        of operation: @escaping CallOperation, until deadline: UInt64, isolation: isolated (any Actor)?
    ) async -> CallOutcome {
        do {
            return .success(
                try await Deadline.$current.withValue(deadline) { try await operation(isolation) })
        } catch {
            return .failure(error)
        }
    }
}

extension LoopIsolation {
    func run(
        _ operation: @escaping CallOperation, until deadline: UInt64, _ completion: @escaping CallCompletion
    ) async {
        completion(await CallTask.outcome(of: operation, until: deadline, isolation: self))
    }
}

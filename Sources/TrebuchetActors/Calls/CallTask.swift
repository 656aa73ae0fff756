/// A call that is not answered yet, as far as its task goes.
package protocol CallUnderWay: AnyObject, Sendable {
    /// By the monotonic clock, in nanoseconds.
    var machineDeadline: UInt64 { get }
    /// The task has begun; it is cancelled at once when nobody waits for it any more.
    func run(in task: Task<Void, Never>)
}

/// Starts the task of a call.
package enum CallTask {
    /// Runs `operation`; `completion` is called on the actor's reactor, or on the thread of the pool where it ends.
    package static func start(
        _ record: ActorRecord, _ operation: @escaping CallOperation, _ call: some CallUnderWay,
        _ completion: @escaping CallCompletion
    ) {
        let deadline = call.machineDeadline
        let task: Task<Void, Never>
        // `immediate`: the task reaches the queue of the executor before this returns, so calls keep their order. It has no
        // executor of its own: what the actor awaits that is not on the reactor runs on the pool.
        if let home = record.home {
            record.life.didStart()
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

package import Synchronization

/// The place of a task that is to be cancelled, also by somebody who is faster than what begins it.
package struct TaskState: Sendable {
    private var task: Task<Void, Never>?
    fileprivate var isCancelled = false

    package init() {}

    /// Returns whether nobody waits for the task any more.
    fileprivate mutating func fill(_ task: Task<Void, Never>) -> Bool {
        self.task = task
        return isCancelled
    }

    fileprivate mutating func cancel() -> Task<Void, Never>? {
        isCancelled = true
        return task
    }
}

extension Mutex<TaskState> {
    /// Cancels the task at once when nobody waits for it any more.
    package borrowing func fill(_ task: Task<Void, Never>) {
        if withLock({ $0.fill(task) }) { task.cancel() }
    }

    package var isCancelled: Bool { withLock { $0.isCancelled } }

    package borrowing func cancel() { withLock { $0.cancel() }?.cancel() }
}

package import Synchronization

/// A slot for a task that can be cancelled, even before the task is stored.
package struct CancellableTaskSlot: Sendable {
    private var task: Task<Void, Never>?
    fileprivate var isCancelled = false

    package init() {}

    /// Stores the task. Returns whether it was cancelled already.
    fileprivate mutating func fill(_ task: Task<Void, Never>) -> Bool {
        self.task = task
        return isCancelled
    }

    fileprivate mutating func cancel() -> Task<Void, Never>? {
        isCancelled = true
        return task
    }
}

extension Mutex<CancellableTaskSlot> {
    /// Stores the task, and cancels it immediately if the slot was cancelled already.
    package borrowing func fill(_ task: Task<Void, Never>) {
        if withLock({ $0.fill(task) }) { task.cancel() }
    }

    package var isCancelled: Bool { withLock { $0.isCancelled } }

    package borrowing func cancel() { withLock { $0.cancel() }?.cancel() }
}

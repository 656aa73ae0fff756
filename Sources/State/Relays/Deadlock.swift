/// Handles a task that is about to wait for itself.
package enum Deadlock {
    /// The reaction to a deadlock.
    package enum Policy: Sendable {
        /// Stops the program with a message that names the deadlock.
        case trap
        /// Queues the work that could not be done now, and continues.
        case queue
    }

    #if DEBUG
        @TaskLocal package static var policy = Policy.trap
    #else
        @TaskLocal package static var policy = Policy.queue
    #endif

    /// Reports a deadlock: traps or returns, according to ``policy``.
    ///
    /// - Parameter advice: how to avoid the deadlock.
    package static func report(_ problem: String, _ advice: String) {
        guard policy == .trap else { return }
        fatalError("deadlock: \(problem). \(advice)")
    }
}

/// The identity of the current task: two equal numbers, read while the task ran, mean the same task.
package enum CurrentTask {
    package static var identity: Int {
        withUnsafeCurrentTask { task in
            // Loads the reference as an Int: its hash value costs more than the rest of the delivery of a value.
            task.map { task in withUnsafeBytes(of: task) { $0.load(as: Int.self) } } ?? 0
        }
    }
}

/// What happens when a task is about to wait for itself.
package enum Deadlock {
    package enum Policy: Sendable {
        /// Stops the program with a message that says what waits for what.
        case trap
        /// Queues what could not be done now, and goes on.
        case queue
    }

    #if DEBUG
        @TaskLocal package static var policy = Policy.trap
    #else
        @TaskLocal package static var policy = Policy.queue
    #endif

    /// - Parameter advice: what can be done about it.
    package static func report(_ what: String, _ advice: String) {
        guard policy == .trap else { return }
        fatalError("deadlock: \(what). It would wait for itself for ever. \(advice)")
    }
}

/// Which task this is: two numbers are equal when one task asked for both while it ran.
package enum CurrentTask {
    package static var identity: Int {
        withUnsafeCurrentTask { task in
            // The reference itself, as long as an Int: its hash value takes longer than all else that is done for a value here.
            task.map { task in withUnsafeBytes(of: task) { $0.load(as: Int.self) } } ?? 0
        }
    }
}

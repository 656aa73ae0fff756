/// What happens when a task is about to wait for itself.
enum Deadlock {
    enum Policy: Sendable {
        /// Stops the program with a message that says what waits for what.
        case trap
        /// Queues what could not be done now, and goes on.
        case queue
    }

    #if DEBUG
        @TaskLocal static var policy = Policy.trap
    #else
        @TaskLocal static var policy = Policy.queue
    #endif

    static func report(_ what: String) {
        guard policy == .trap else { return }
        fatalError(
            "QStream: deadlock: \(what). It would wait for itself for ever. "
                + "Put .dispatch() in front of the subscriber that sends, or break the circle.")
    }
}

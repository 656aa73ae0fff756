internal import Platform
internal import Transports

extension Reactor {
    /// Queues `task` for continuation in a later turn. The caller queues a task only once.
    package func scheduleResume(_ task: any Resumable) { ready.append(task) }

    /// Queues `task` for a step that may take longer than a task's share of a turn, such as the decompression of a large message.
    ///
    /// Such steps share one time slice of each turn, in order, whatever the number of tasks. A turn has at least one step.
    package func scheduleLongStep(_ task: any Resumable) { longSteps.append(task) }

    /// Continues the tasks that are queued now, each once.
    func runQueuedTasks() {
        guard !ready.isEmpty else { return }
        run(ready.count) { ready.removeFirst() }
    }

    /// Runs long steps within a time slice. After one that took longer, they rest for the same time, so that other work of the reactor,
    /// which needs several turns with other threads in between, has at least half of the time.
    func runLongSteps() {
        let begun = MonotonicClock.now
        guard begun >= endOfRest else { return }
        beginPart(at: begun)
        run(longSteps.count) { longSteps.removeFirst() }
        let taken = lastClockReading &- begun
        if taken > Self.partOfTurn { endOfRest = lastClockReading &+ min(taken, Self.longestRest) }
    }

    /// The clock is read after each task: a task may use its whole share, and a long step more.
    private func run(_ count: Int, _ next: () -> any Resumable) {
        recordActivity(.line)
        let begun = MonotonicClock.now
        for _ in 0..<count {
            next().resume()
            if !outboxes.isEmpty { handOverWhenDue() }
            lastClockReading = MonotonicClock.now
            if lastClockReading &- begun >= Self.partOfTurn { break }
        }
        handOver()
    }
}

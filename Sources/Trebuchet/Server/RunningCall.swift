internal import Networking
internal import Synchronization

/// A call that was not answered at once: one that runs in a task, or on another reactor.
///
/// `@unchecked Sendable`: `timer` and `isAnswered` are touched on the session's reactor alone, and so is `run` once the call
/// has been handed to others, behind a lock.
final class RunningCall: @unchecked Sendable {
    let callID: [UInt8]
    /// Nanoseconds of the monotonic clock.
    let deadline: UInt64
    var timer: Timer?
    var isAnswered = false
    /// The call of an `@Idempotent` method that this one waits for; it outlives the connection.
    var run: RunningCall?
    private let state = Mutex(State())

    private struct State {
        var task: Task<Void, Never>?
        var isCancelled = false
    }

    init(callID: [UInt8], deadline: UInt64) {
        self.callID = callID
        self.deadline = deadline
    }

    /// The task that runs the call; cancelled at once when the call was cancelled before it began.
    func run(in task: Task<Void, Never>) {
        let isCancelled = state.withLock { state in
            state.task = task
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    /// On the session's reactor.
    func cancel() {
        timer?.cancel()
        run?.cancelTask()
        cancelTask()
    }

    /// Nobody is there any more whom it could be answered.
    func abandon() {
        timer?.cancel()
        if run == nil { cancelTask() }
    }

    private func cancelTask() {
        let task = state.withLock { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }
}

internal import Platform
internal import Synchronization
internal import Transports
internal import TrebuchetActors

/// A call of the server's that an actor of the client has under way.
///
/// `@unchecked Sendable`: `timer` is touched on the client's loop alone; the rest is constant.
final class HostedCall: CallUnderWay, @unchecked Sendable {
    let machineDeadline: UInt64
    private let task = Mutex(TaskState())
    var timer: LoopTimer?
    /// What it is part of, until it is answered.
    var told: ToldCall?

    init(after limit: Duration) {
        machineDeadline = MonotonicClock.now &+ limit.nanoseconds
    }

    func run(in task: Task<Void, Never>) { self.task.fill(task) }

    func cancel() {
        timer?.cancel()
        task.cancel()
    }
}

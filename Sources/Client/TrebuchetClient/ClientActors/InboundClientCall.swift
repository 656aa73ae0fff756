internal import Platform
internal import Synchronization
internal import Transports
internal import TrebuchetActors

/// An in-flight call of the server to a client actor.
///
/// `@unchecked Sendable`: `timer` is accessed only on the client's event loop; the rest is constant.
final class InboundClientCall: CancellableCall, @unchecked Sendable {
    let machineDeadline: UInt64
    private let task = Mutex(CancellableTaskSlot())
    var timer: LoopTimer?
    /// The span of the call, until its response.
    var observedCall: ObservedCall?

    init(after limit: Duration) {
        machineDeadline = MonotonicClock.now &+ limit.nanoseconds
    }

    func run(in task: Task<Void, Never>) { self.task.fill(task) }

    func cancel() {
        timer?.cancel()
        task.cancel()
    }
}

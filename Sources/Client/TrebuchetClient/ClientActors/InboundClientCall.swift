internal import Platform
internal import Synchronization
internal import Transports
internal import TrebuchetActors

/// An in-flight call of the server to a client actor.
final class InboundClientCall: CancellableCall {
    /// The part that is used on the client's event loop only.
    struct State {
        var timer: LoopTimer?
        /// The span of the call, until its response.
        var observedCall: ObservedCall?
    }

    let machineDeadline: UInt64
    private let task = Mutex(CancellableTaskSlot())
    let state: LoopVariable<State>

    init(after limit: Duration, on loop: any EventLoop) {
        state = LoopVariable(State(), on: loop)
        machineDeadline = MonotonicClock.now &+ limit.nanoseconds
    }

    func run(in task: Task<Void, Never>) { self.task.fill(task) }

    func cancel() {
        state.value.timer?.cancel()
        task.cancel()
    }
}

internal import Transports

/// The timer of a filter whose update waits for the end of an interval. It ends with the filter.
final class FilterTimer: Sendable {
    private let clock: any EventLoop
    private let state: LoopVariable<(timer: LoopTimer?, isCancelled: Bool)>

    init(on clock: any EventLoop) {
        self.clock = clock
        state = LoopVariable((nil, false), on: clock)
    }

    func schedule(after nanoseconds: UInt64, _ work: @escaping @Sendable (FilterTimer) -> Void) {
        clock.execute {
            guard !self.state.value.isCancelled else { return }
            self.state.value.timer = self.clock.schedule(
                after: .nanoseconds(Int64(clamping: nanoseconds)), for: self, work)
        }
    }

    func cancel() {
        clock.run {
            self.state.value.isCancelled = true
            self.state.value.timer?.cancel()
        }
    }
}

internal import Transports

/// The timer of a filter whose update waits for the end of an interval. It ends with the filter.
///
/// `@unchecked Sendable`: `timer` and `isCancelled` are accessed only on the clock's reactor.
final class FilterTimer: @unchecked Sendable {
    private let clock: any EventLoop
    private var timer: LoopTimer?
    private var isCancelled = false

    init(on clock: any EventLoop) { self.clock = clock }

    func schedule(after nanoseconds: UInt64, _ work: @escaping @Sendable (FilterTimer) -> Void) {
        clock.execute {
            guard !self.isCancelled else { return }
            self.timer = self.clock.schedule(after: .nanoseconds(Int64(clamping: nanoseconds)), for: self, work)
        }
    }

    func cancel() {
        clock.run {
            self.isCancelled = true
            self.timer?.cancel()
        }
    }
}

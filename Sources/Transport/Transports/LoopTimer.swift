/// A scheduled action of an event loop. Cancelling it is cheap.
package final class LoopTimer {
    /// The due time in nanoseconds of the loop's clock.
    package let deadline: UInt64
    /// The action, or nil once it has fired or was cancelled, so that captured objects are freed immediately.
    ///
    /// It has no dynamic exclusivity check, which each call with a deadline would pay for: it is read and written in one step,
    /// only on the loop.
    @exclusivity(unchecked) package internal(set) var work: (() -> Void)?

    package init(deadline: UInt64, work: @escaping () -> Void) {
        self.deadline = deadline
        self.work = work
    }

    /// Cancels the action. Does nothing after it has run.
    package func cancel() { work = nil }

    /// Runs the action, unless it has run or was cancelled.
    package func fire() {
        guard let work else { return }
        self.work = nil
        work()
    }
}

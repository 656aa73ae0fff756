/// Something that is to happen at a time; cancelling it is free.
package final class LoopTimer {
    /// Nanoseconds of the monotonic clock.
    package let deadline: UInt64
    /// Nil once it has fired or was cancelled, so that what it holds is freed at once.
    ///
    /// Without a check of exclusive access, which each call with a deadline would pay for: it is read and written in one step, on the
    /// loop alone.
    @exclusivity(unchecked) package internal(set) var work: (() -> Void)?

    package init(deadline: UInt64, work: @escaping () -> Void) {
        self.deadline = deadline
        self.work = work
    }

    /// The work will not run. Harmless after it ran.
    package func cancel() { work = nil }

    /// Does the work, unless it was done or cancelled.
    package func fire() {
        guard let work else { return }
        self.work = nil
        work()
    }
}

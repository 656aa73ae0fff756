internal import Relays

/// Lets a test store sleep until an effect has sent something or has ended.
final class ChangeSignal: Sendable {
    private let state = Monitor<UInt64>(0)

    /// How often something has happened; to be read before looking at what it was.
    var count: UInt64 { state.withLock { $0 } }

    func fire() { state.change { $0 += 1 }.woken.resume() }

    /// Returns once more than `count` things have happened, or at the deadline.
    func wait(after count: UInt64, until deadline: ContinuousClock.Instant) async {
        let alarm = Task {
            guard (try? await Task.sleep(until: deadline)) != nil else { return }
            self.fire()
        }
        defer { alarm.cancel() }
        await state.wait { $0 > count ? () : nil }
    }
}

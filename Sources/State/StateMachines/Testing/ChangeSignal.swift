internal import Relays

/// Lets a test store wait until an effect has sent an action or has ended.
final class ChangeSignal: Sendable {
    private let state = Monitor<UInt64>(0)

    /// The number of events; to be read before the state that they change.
    var count: UInt64 { state.withLock { $0 } }

    func fire() { state.change { $0 += 1 }.woken.resume() }

    /// Returns after more than `count` events, or at the deadline.
    func wait(after count: UInt64, until deadline: ContinuousClock.Instant) async {
        let alarm = Task {
            guard (try? await Task.sleep(until: deadline)) != nil else { return }
            self.fire()
        }
        defer { alarm.cancel() }
        await state.wait { $0 > count ? () : nil }
    }
}

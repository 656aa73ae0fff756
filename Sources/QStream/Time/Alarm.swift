/// Rings once at a time that may be moved while it runs; it sleeps in a task that lives while the alarm is set.
///
/// It does not ring twice at once: set while it rings, it waits for that to end.
final class Alarm: Sendable {
    private struct State {
        var deadline: Duration?
        var ring: (@Sendable () async -> Void)?
        var sleeper: Task<Void, Never>?
        /// Whether there is a task that will look at the deadline; it may not have been noted in `sleeper` yet.
        var hasSleeper = false
        /// The sleeper that counts; one that finds another number here has been cancelled.
        var number = 0
        var isRinging = false
    }

    let clock: StreamClock
    private let worker = Worker.current
    private let state = Kept(State())

    init(_ clock: some Clock<Duration>) { self.clock = StreamClock(clock) }

    /// Rings so long after now; what was set before does not count any more.
    ///
    /// A running alarm can be moved to a later time only.
    func set(after interval: Duration, _ ring: @escaping @Sendable () async -> Void) {
        let deadline = clock.now() + interval
        let number = state.withLock { state -> Int? in
            state.deadline = deadline
            state.ring = ring
            guard !state.hasSleeper else { return nil }
            state.hasSleeper = true
            state.number += 1
            return state.number
        }
        guard let number else { return }
        let sleeper = worker.start { await self.run(number) }
        let isWanted = state.withLock { state in
            guard state.number == number, state.hasSleeper else { return false }
            state.sleeper = sleeper
            return true
        }
        // Cancelled before it was noted. One that has ended does not mind.
        if !isWanted { sleeper.cancel() }
    }

    /// The alarm does not ring; if it does already, that goes on.
    func cancel() {
        let sleeper = state.withLock { state -> Task<Void, Never>? in
            state.deadline = nil
            state.ring = nil
            guard !state.isRinging else { return nil }
            state.number += 1
            state.hasSleeper = false
            return state.sleeper.take()
        }
        sleeper?.cancel()
    }

    private enum Step {
        case sleep(Duration)
        case ring(@Sendable () async -> Void)
        case end
    }

    private func run(_ number: Int) async {
        while true {
            let now = clock.now()
            let step = state.withLock { state -> Step in
                guard state.number == number else { return .end }
                guard let deadline = state.deadline, let ring = state.ring else {
                    state.sleeper = nil
                    state.hasSleeper = false
                    return .end
                }
                guard deadline <= now else { return .sleep(deadline) }
                state.deadline = nil
                state.ring = nil
                state.isRinging = true
                return .ring(ring)
            }
            switch step {
            case .end: return
            case .sleep(let deadline): try? await clock.sleep(deadline)
            case .ring(let ring):
                await ring()
                state.withLock { $0.isRinging = false }
            }
        }
    }
}

/// Any clock, with its instants as durations since this was made.
struct StreamClock: Sendable {
    let now: @Sendable () -> Duration
    /// Throws when the task is cancelled.
    let sleep: @Sendable (_ until: Duration) async throws -> Void

    init(_ clock: some Clock<Duration>) {
        let start = clock.now
        now = { start.duration(to: clock.now) }
        sleep = { try await clock.sleep(until: start.advanced(by: $0), tolerance: nil) }
    }
}

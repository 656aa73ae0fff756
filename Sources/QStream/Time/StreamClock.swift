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

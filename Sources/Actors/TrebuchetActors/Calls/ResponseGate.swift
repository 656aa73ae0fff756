internal import Platform
internal import Transports

/// Holds the responses of queued calls that have returned, until a write that their results depend on has ended. A held response
/// needs no task. Only on the reactor of its actor.
package final class ResponseGate {
    /// A held response.
    struct Entry {
        let outcome: CallOutcome
        /// Creates the result when the gate opens, instead of the returned one.
        let result: (() throws -> _CallResult)?
        /// The deadline in nanoseconds of the monotonic clock.
        let deadline: UInt64
        /// The maximum duration of the call.
        let limit: Duration
        let respond: (CallOutcome) -> Void
    }

    private let reactor: any EventLoop
    private var entries: [Entry] = []
    /// The timer for the earliest deadline.
    private var timer: (timer: LoopTimer, time: UInt64)?
    private var isOpen = false
    private var error: (any Error)?

    package init(on shard: SystemShard) { reactor = shard.reactor }

    func hold(_ entry: Entry) {
        // An error does not depend on the write.
        if case .failure = entry.outcome { return entry.respond(entry.outcome) }
        guard !isOpen else { return send(entry) }
        entries.append(entry)
        if entry.deadline < timer?.time ?? .max { watch(entry.deadline) }
    }

    /// Sends the responses, and those that are held later.
    ///
    /// - Parameter error: sent instead of the results; nil when the write has succeeded.
    package func open(failing error: (any Error)?) {
        (isOpen, self.error) = (true, error)
        timer?.timer.cancel()
        timer = nil
        let waiting = entries
        entries = []
        for entry in waiting { send(entry) }
    }

    private func send(_ entry: Entry) {
        if let error { return entry.respond(.failure(error)) }
        guard let result = entry.result else { return entry.respond(entry.outcome) }
        entry.respond(CallOutcome { try result() })
    }

    private func watch(_ time: UInt64) {
        timer?.timer.cancel()
        let now = MonotonicClock.now
        let wait = Duration.nanoseconds(Int64(clamping: time > now ? time - now : 0))
        timer = (reactor.schedule(after: wait, for: self) { $0.timeOut() }, time)
    }

    /// Answers the calls whose deadline has passed.
    private func timeOut() {
        timer = nil
        let now = MonotonicClock.now
        let waiting = entries
        entries = waiting.filter { $0.deadline > now }
        for entry in waiting where entry.deadline <= now {
            entry.respond(.failure(TrebuchetError(.timeout, "the call took longer than \(entry.limit)")))
        }
        if let next = entries.lazy.map(\.deadline).min() { watch(next) }
    }
}

extension SystemShard {
    /// Holds the response of the call that the current task runs, until a gate opens. The call must return without suspending.
    ///
    /// - Parameter result: creates the result when the gate opens; nil for the returned one.
    /// - Returns: false when the call does not run in the call queue of this reactor; its response cannot be held then.
    package func deferResponse(until gate: ResponseGate, result: (() throws -> _CallResult)? = nil) -> Bool {
        guard let calls = callQueue as? CallQueue else { return false }
        return calls.deferResponse(until: gate, result: result)
    }
}

internal import Platform
internal import Synchronization
internal import Transports

/// A call with an event or a span.
package final class ObservedCall: Sendable {
    /// The event data; nil for a call that only passes on a trace that is not sampled, of which `trace` is the only content.
    package let call: ServerEvent.Call?
    /// The trace context of the method.
    package let trace: TraceContext?
    /// The caller's span, of which the call is a child.
    private let parent: UInt64?
    /// The start time on the monotonic clock; 0 for a call without events.
    private let began: UInt64
    /// The wall-clock time of the start, for its span.
    private let beganAt: UInt64
    /// The time at which the method had returned and its response started to wait for the store; 0 if it does not wait.
    private let executedAt = Atomic<UInt64>(0)

    /// Set after the call was answered or abandoned.
    private let over = Atomic<Bool>(false)

    /// The number that marks changes of the call; 0 if no event handler receives calls or changes.
    package let mark: UInt64

    /// Creates the record of a call.
    ///
    /// - Parameters:
    ///   - parent: the span that the call is a child of; nil if its trace starts here.
    ///   - isMarking: whether an event handler receives calls or their changes.
    package init(_ call: ServerEvent.Call, parent: UInt64? = nil, isMarking: Bool = true) {
        self.call = call
        mark = isMarking ? call.number : 0
        trace = call.trace
        self.parent = parent
        began = MonotonicClock.now
        beganAt = call.trace?.isSampled == true ? WallClock.now : 0
    }

    /// Creates the record of a call in a trace that is not sampled, without events. Its method inherits the trace and passes it
    /// on to the calls that it makes.
    package init(passing trace: TraceContext) {
        (call, self.trace, parent, began, beganAt, mark) = (nil, trace, nil, 0, 0, 0)
    }

    /// The trace context in the response: only for a caller that has sent a sampled trace.
    package var traceparent: String? {
        guard let trace, trace.isSampled, let parent, parent != trace.span else { return nil }
        return trace.traceparent
    }

    /// Records that the method has returned and its response waits for a store write.
    func waitsForStore() {
        if trace?.isSampled == true { executedAt.store(MonotonicClock.now, ordering: .relaxed) }
    }

    /// Whether the call has ended. Later work of tasks that it started belongs neither to the call nor to its trace.
    package var isOver: Bool { over.load(ordering: .relaxed) }

    /// Ends the call; later work of its tasks no longer belongs to it.
    package func markEnded() { over.store(true, ordering: .relaxed) }

    /// Runs the method of the call; its changes are attributed to the call.
    package func during<Result>(_ body: () throws -> Result) rethrows -> Result {
        guard mark != 0 else { return try TraceContext.with(trace, until: self, body) }
        guard trace != nil else { return try EventBus.$running.withValue(self, operation: body) }
        return try TraceContext.with(trace, until: self) { try EventBus.$running.withValue(self, operation: body) }
    }

    /// Reports the end of the call.
    ///
    /// - Parameter isContinuing: whether the method still runs, for a client that sends the call again.
    package func reportEnd(to events: EventBus, _ error: TrebuchetError.Code?, isContinuing: Bool = false) {
        if !isContinuing { markEnded() }
        guard let call else { return }
        let now = MonotonicClock.now
        if events.isEnabled(for: .calls) {
            events.emit(.callEnded(call, duration: .nanoseconds(Int64(clamping: now &- began)), error: error))
        }
        guard let trace, trace.isSampled, events.isEnabled(for: .spans) else { return }
        let code = error.map { "\($0)" }
        let executedAt = executedAt.load(ordering: .relaxed)
        if executedAt != 0 {
            events.emit(
                .spanEnded(
                    TraceSpan(
                        .storeWrite(actor: call.actor), trace.child, of: trace.span,
                        beganAt: beganAt &+ (executedAt &- began),
                        duration: now &- executedAt, error: code)))
        }
        events.emit(
            .spanEnded(
                TraceSpan(
                    .served(TraceSpan.Served(call)), trace, of: parent, beganAt: beganAt, duration: now &- began,
                    error: code)))
    }
}

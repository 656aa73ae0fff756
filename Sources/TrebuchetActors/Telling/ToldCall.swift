internal import Platform
internal import Synchronization
internal import Transports

/// A call that somebody is told of, or that is part of a trace.
package final class ToldCall: Sendable {
    /// Nil of one that nobody is told of, as its trace is not kept: nothing is made of it but what `trace` says.
    package let call: ServerEvent.Call?
    /// What its method is part of.
    package let trace: TraceContext?
    /// The span that it is a child of, of whoever made the call.
    private let parent: UInt64?
    /// By the monotonic clock; 0 of one that nobody is told of.
    private let began: UInt64
    /// The time of day then, for its span.
    private let beganAt: UInt64
    /// When its method had run and its answer began to wait for the store; 0 when it does not.
    private let ran = Atomic<UInt64>(0)

    /// Whether it is answered, or given up.
    private let over = Atomic<Bool>(false)

    /// What marks its changes as its own; 0 where nobody is told of calls, nor of what they change.
    package let mark: UInt64

    /// - Parameters:
    ///   - parent: the span that the call is a child of; nil where its trace begins.
    ///   - isMarking: whether somebody is told of calls, or of what they change.
    package init(_ call: ServerEvent.Call, parent: UInt64? = nil, isMarking: Bool = true) {
        self.call = call
        mark = isMarking ? call.number : 0
        trace = call.trace
        self.parent = parent
        began = MonotonicClock.now
        beganAt = call.trace?.isSampled == true ? WallClock.now : 0
    }

    /// Of a trace that is not kept, and which nobody else is told of: its method is part of it, so that what it calls is.
    package init(passing trace: TraceContext) {
        (call, self.trace, parent, began, beganAt, mark) = (nil, trace, nil, 0, 0, 0)
    }

    /// What its answer says of the trace: only who has sent one that is kept is told.
    package var traceparent: String? {
        guard let trace, trace.isSampled, let parent, parent != trace.span else { return nil }
        return trace.traceparent
    }

    /// Its method has run; what it changed is to be written before its answer leaves.
    func waitsForStore() {
        if trace?.isSampled == true { ran.store(MonotonicClock.now, ordering: .relaxed) }
    }

    /// Whether it has ended: what tasks do then that it has begun is no part of it, nor of its trace.
    package var isOver: Bool { over.load(ordering: .relaxed) }

    /// What goes on in tasks that it has begun is no part of it any more.
    package func end() { over.store(true, ordering: .relaxed) }

    /// Runs the method of the call: what it changes is its doing.
    package func during<Result>(_ body: () throws -> Result) rethrows -> Result {
        guard mark != 0 else { return try TraceContext.with(trace, until: self, body) }
        guard trace != nil else { return try ServerEvents.$running.withValue(self, operation: body) }
        return try TraceContext.with(trace, until: self) { try ServerEvents.$running.withValue(self, operation: body) }
    }

    /// - Parameter goesOn: whether its method runs all the same, for who asks again.
    package func tell(endAt events: ServerEvents, _ error: TrebuchetError.Code?, goesOn: Bool = false) {
        if !goesOn { end() }
        guard let call else { return }
        let now = MonotonicClock.now
        if events.wants(.calls) {
            events.tell(.callEnded(call, took: .nanoseconds(Int64(clamping: now &- began)), error: error))
        }
        guard let trace, trace.isSampled, events.wants(.spans) else { return }
        let code = error.map { "\($0)" }
        let ran = ran.load(ordering: .relaxed)
        if ran != 0 {
            events.tell(
                .spanEnded(
                    TraceSpan(
                        .storeWrite(actor: call.actor), trace.child, of: trace.span, beganAt: beganAt &+ (ran &- began),
                        took: now &- ran, error: code)))
        }
        events.tell(
            .spanEnded(
                TraceSpan(
                    .served(TraceSpan.Served(call)), trace, of: parent, beganAt: beganAt, took: now &- began,
                    error: code)))
    }
}

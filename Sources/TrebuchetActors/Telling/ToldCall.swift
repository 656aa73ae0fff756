internal import Platform
internal import Synchronization
internal import Transports

/// A call that somebody is told of.
package final class ToldCall: Sendable {
    package let call: ServerEvent.Call
    /// The span that it is a child of, of whoever made the call.
    private let parent: UInt64?
    /// By the monotonic clock.
    private let began = MonotonicClock.now
    /// The time of day then, for its span.
    private let beganAt: UInt64
    /// When its method had run and its answer began to wait for the store; 0 when it does not.
    private let ran = Atomic<UInt64>(0)

    /// - Parameter parent: the span that the call is a child of; nil where its trace begins.
    package init(_ call: ServerEvent.Call, parent: UInt64? = nil) {
        self.call = call
        self.parent = parent
        beganAt = call.trace == nil ? 0 : WallClock.now
    }

    /// What its answer says of the trace: only who has sent one is told.
    package var traceparent: String? {
        guard let trace = call.trace, let parent, parent != trace.span else { return nil }
        return trace.traceparent
    }

    /// Its method has run; what it changed is to be written before its answer leaves.
    func waitsForStore() {
        if call.trace?.isSampled == true { ran.store(MonotonicClock.now, ordering: .relaxed) }
    }

    package func tell(endAt events: ServerEvents, _ error: TrebuchetError.Code?) {
        let now = MonotonicClock.now
        events.tell(.callEnded(call, took: .nanoseconds(Int64(clamping: now &- began)), error: error))
        guard let trace = call.trace, trace.isSampled, events.wants(.spans) else { return }
        let code = error.map { "\($0)" }
        let ran = ran.load(ordering: .relaxed)
        if ran != 0 {
            events.tell(
                .spanEnded(
                    TraceSpan(
                        "store write", .internal, trace.child, of: trace.span, beganAt: beganAt &+ (ran &- began),
                        took: now &- ran, attributes: [("trebuchet.actor", call.actor)], error: code)))
        }
        var attributes = TraceSpan.rpc(call.type, call.method)
        attributes.append(("trebuchet.actor", call.actor))
        attributes.append(("trebuchet.connection", "\(call.peer.connection)"))
        if let address = call.peer.address { attributes.append(("network.peer.address", address.host)) }
        events.tell(
            .spanEnded(
                TraceSpan(
                    "\(call.type)/\(call.method)", .server, trace, of: parent, beganAt: beganAt, took: now &- began,
                    attributes: attributes, error: code)))
    }
}

internal import Bytes
internal import Synchronization
internal import TrebuchetClient
internal import TrebuchetWire

/// A call from the server to a client actor.
final class OutboundClientCall: Sendable {
    let number: UInt64
    let actor: String
    let target: String
    private let request: CallRequest
    /// The deadline by the clock of the `ClientActorHost`'s reactor.
    let deadline: UInt64
    /// True if `ServerLimits.clientCalls.timeout` determines the deadline.
    let isLimit: Bool
    private let traceparent: String?
    /// Set when the caller's task is cancelled, which may be before the call is started.
    let isCancelled = Atomic<Bool>(false)
    /// True if the client may have received the call. Set before its connection reports the end of the link.
    let wasSent = Atomic<Bool>(false)

    init(
        number: UInt64, actor: String, target: String, request: CallRequest, deadline: UInt64, isLimit: Bool,
        traceparent: String?
    ) {
        self.traceparent = traceparent
        self.number = number
        self.actor = actor
        self.target = target
        self.request = request
        self.deadline = deadline
        self.isLimit = isLimit
    }

    /// The approximate memory use in bytes.
    var byteCount: Int {
        let parts =
            request.arguments.reduce(0) { $0 + $1.count } + request.generics.reduce(0) { $0 + $1.utf8.count }
        return parts + actor.utf8.count + target.utf8.count + AdvertisedLimits.callOverhead
    }

    /// Returns the message with the remaining time as its timeout.
    func message(at now: UInt64) -> [UInt8] {
        let left = deadline > now ? deadline - now : 0
        return InvocationMessage(
            number: number, actorID: actor, target: target, request: request,
            timeoutMilliseconds: Int((left + 999_999) / 1_000_000), traceparent: traceparent
        ).bytes
    }
}

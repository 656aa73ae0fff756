internal import Networking
internal import Platform
internal import Synchronization
internal import Transports
package import TrebuchetActors

/// A call that was not answered at once: it waits for its actor, runs in a task, or runs on another reactor.
///
/// `@unchecked Sendable`: mutable properties are accessed on the connection's reactor only. `crossing`, `home`, `run`, `caller` and `idempotencyRecord`
/// are set before the call goes to another one; the rest is constant.
package final class InFlightCall: CancellableCall, @unchecked Sendable {
    package let callID: [UInt8]
    /// The deadline by the clock of its connection's reactor, in nanoseconds.
    let deadline: UInt64
    /// The start by the monotonic clock.
    let began: UInt64
    /// The row in which its time is counted; nil if it calls no method.
    var row: Int?
    /// The observed call, while event handlers or spans need it. A call that outlives the connection shares it, but reports no
    /// second end.
    var observedCall: ObservedCall?
    /// The difference of that clock to the monotonic clock.
    private let timeAhead: UInt64
    /// The deadline by the monotonic clock.
    package var machineDeadline: UInt64 { deadline &- timeAhead }
    /// The size of the message, which counts as memory while the call runs.
    let byteCount: Int
    var timer: LoopTimer?
    private(set) var isAnswered = false
    /// Indicates whether work runs for it that does not end with its response, and reports its end.
    var isAtWork = false
    /// Indicates whether the connection's table has another call under its callID.
    var isUnlisted = false
    /// Indicates whether it was answered during that work: it counts until the work has ended.
    var isAnsweredEarly = false
    /// The client's message, if its actor may move to another server before the call starts. Kept only while the client waits.
    var message: OwnedMessage?
    /// The execution of the `@Idempotent` call that this one waits for; it outlives the connection.
    var run: InFlightCall?
    /// Indicates whether it runs in place on another reactor, and so ends soon.
    var isInTransit = false
    /// The queue in which it runs there. Set before it is sent.
    var crossing: CrossReactorCallQueue?
    /// The record of the call in the store, if its actor is persisted. Set before it goes to the actor's reactor.
    var idempotencyRecord: IdempotencyRecord?
    /// The shard of its actor; nil for an actor without a reactor, and until the activation. Set before it is sent.
    var home: SystemShard?
    /// The caller when the call arrived, at a server that authenticates callers. Set before the call goes to another reactor.
    var caller: Caller?
    /// Set for a `repeat`: the reactor of its actor, where it is known.
    var repeated: OriginalCall?
    /// Set for a stream that waits to start. Read and written in one step, so access needs no check.
    @exclusivity(unchecked) package var stream: RequestedStream?
    /// Set for a forwarded call. Read and written in one step, so access needs no check.
    @exclusivity(unchecked) package var forwarded: (any ForwardedRequest)?
    var streamedActor: ActorName? { stream?.actor }
    /// Its entry in the queue for the activation.
    var waiter: ActivationWaiter?
    /// Set when it has waited for the activation of an actor that may live on other servers: the caller's streams of the earlier activation may have
    /// queued behind it.
    var activatedActor: ActorName?
    /// Set for a stream that its server resumes without a request: moves it to another server.
    var moveStream: (() -> Void)?
    /// Its response, while that waits for streams.
    var answer: ResponseBarrier?
    /// Called when it is cancelled while it waits there: no other event would end it.
    var didStopWaiting: (() -> Void)?
    /// The rules and the principal that permitted it, if authorization may be needed again.
    var permission: AuthorizationCache.Basis?
    /// Set while interceptors run around it.
    var intercepted: InterceptedCall?
    /// The metadata of the method; nil without any. Set before the call goes to another reactor.
    private(set) var metadata: CallMetadata?
    private let task = Mutex(CancellableTaskSlot())

    /// - Parameter earlier: The withdrawn call that this one continues, with the same deadline.
    init(
        callID: [UInt8], after limit: Duration, on reactor: Reactor, byteCount: Int,
        continuing earlier: InFlightCall? = nil
    ) {
        timeAhead = earlier?.timeAhead ?? reactor.timeAhead
        began = earlier?.began ?? MonotonicClock.now
        deadline = earlier?.deadline ?? began &+ timeAhead &+ limit.nanoseconds
        self.callID = callID
        self.byteCount = byteCount
    }

    /// Creates the running call of a queued call.
    init(_ call: borrowing QueuedCall, on reactor: Reactor) {
        timeAhead = reactor.timeAhead
        deadline = call.deadline &+ timeAhead
        began = call.deadline &- call.limit.nanoseconds
        callID = call.callID
        byteCount = call.bytes
    }

    /// Creates the part of a call that outlives its connection, with the same deadline.
    init(of call: InFlightCall) {
        callID = call.callID
        (deadline, timeAhead, began) = (call.deadline, call.timeAhead, call.began)
        observedCall = call.observedCall
        caller = call.caller
        metadata = call.metadata
        byteCount = 0
    }

    /// Takes over the interceptors of the withdrawn call that this one continues, and the metadata.
    func inherit(_ earlier: InFlightCall?, _ message: borrowing Message) {
        if let intercepted = earlier?.intercepted {
            earlier?.intercepted = nil
            self.intercepted = intercepted
            intercepted.call = self
        }
        if let metadata = intercepted?.metadata {
            self.metadata = metadata.isEmpty ? nil : metadata
        } else if message.hasMetadata {
            metadata = message.metadata
        }
    }

    /// The target of a repeated call.
    struct OriginalCall {
        let actor: ActorName
        /// nil for an actor that is not active, or lives on no reactor.
        let home: SystemShard?
    }

    package func run(in task: Task<Void, Never>) { self.task.fill(task) }

    /// Indicates whether the caller waits no longer. May be read on any thread.
    package var isCancelled: Bool { task.isCancelled }

    /// Marks the call as answered; returns false when it was.
    func markAnswered() -> Bool {
        guard !isAnswered else { return false }
        isAnswered = true
        timer?.cancel()
        stopWaiting()
        (didStopWaiting, moveStream, message) = (nil, nil, nil)
        return true
    }

    /// Cancels the call. Isolated to the connection's reactor.
    func cancel() {
        timer?.cancel()
        intercepted?.cancel()
        forwarded?.cancel()
        stopWaiting()
        if let run {
            let waited = run.waiter != nil
            run.stopWaiting()
            if waited { run.didStopWaiting?() }
            run.task.cancel()
        }
        task.cancel()
    }

    /// Ends the call without a response: its connection is closed.
    func abandon() {
        timer?.cancel()
        stopWaiting()
        (forwarded, message) = (nil, nil)
        intercepted?.abandon()
        if run == nil { task.cancel() }
    }

    private func stopWaiting() {
        waiter?.cancel()
        waiter = nil
    }
}

/// The identification of a stream that is to start.
package struct RequestedStream: Sendable {
    package let actor: ActorName
    /// The target, such as `observeState`.
    package let target: String
    /// The client's name of a stream that it resumes without a `callID`.
    package let resumed: [UInt8]?
    /// The client's name of a stream that its server resumes without a request, with its earlier callID.
    let knownAs: [UInt8]?

    package init(actor: ActorName, target: String, resumed: [UInt8]?, knownAs: [UInt8]? = nil) {
        (self.actor, self.target, self.resumed, self.knownAs) = (actor, target, resumed, knownAs)
    }
}

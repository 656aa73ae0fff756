internal import Bytes
internal import Networking
internal import Platform
internal import Synchronization
internal import Transports
package import TrebuchetActors

/// A call that was not answered at once: a call of a client, a stream that waits to start, or the execution of an `@Idempotent` call,
/// which several calls may wait for.
///
/// ``phase`` says what the call waits for. The functions of this file are the only ones that change it.
///
/// `@unchecked Sendable`: mutable properties are accessed on the reactor of its connection only, or that of its execution. `crossReactorQueue`,
/// `home`, `caller` and `permission` are set before the call goes to another reactor; the rest is constant.
package final class InFlightCall: CancellableCall, @unchecked Sendable {
    /// The state of a call. A payload exists in its phase only.
    enum Phase {
        /// The call was registered, or a phase has ended and the next one follows in this turn.
        case registered
        /// It waits for the activation of its actor.
        case awaitingActivation(ActivationWaiter)
        /// It is on its way to its actor, or runs there. The end of the work is reported to ``endWork()``.
        case running
        /// The store is searched for the record of an earlier execution. The end of the work is reported to ``endWork()``.
        case readingStore
        /// It waits for the execution of an `@Idempotent` method. The message is kept if the actor may move to another server before
        /// the execution starts.
        case awaitingExecution(InFlightCall, OwnedMessage?)
        /// It waits for another server.
        case forwarded(any ForwardedRequest)
        /// Its response waits for streams of the connection.
        case awaitingStreams(ResponseBarrier)
        /// Interceptors run: before the call is executed, or with its outcome. Their end is reported to ``endWork()``.
        case intercepted
        /// It has no caller any more, but work for it continues and counts until it ends.
        ///
        /// - isAnswered: False if its connection was closed. The outcome of the work is reported to event handlers then.
        case continuing(isAnswered: Bool)
        /// Its connection was closed, and nothing works for it here.
        case abandoned
        /// It was answered or withdrawn.
        case ended
    }

    /// The target of a repeated call.
    struct OriginalCall {
        let actor: ActorName
        /// nil for an actor that is not active, or lives on no reactor.
        let home: SystemShard?
        /// False for a call with an idempotency key, which may be the first one.
        var wasSentBefore = true
    }

    package let callID: [UInt8]
    /// The deadline by the clock of its connection's reactor, in nanoseconds.
    let deadline: UInt64
    /// The start by the monotonic clock.
    let began: UInt64
    /// The difference of that clock to the monotonic clock.
    private let timeAhead: UInt64
    /// The size of the message, which counts as memory while the call runs.
    let byteCount: Int
    /// Indicates whether it runs in place on another reactor, and so ends soon.
    let isInTransit: Bool
    /// The properties of an execution of an `@Idempotent` call, which outlives the connection; nil for other calls.
    let execution: IdempotentExecution?

    private(set) var phase = Phase.registered
    /// Indicates whether the call may have been executed even if its outcome is unknown: it was sent to another server, or is
    /// executed for several calls.
    private(set) var mayHaveRun = false
    /// Indicates whether the call was passed to another server, whose interceptors run around it. If the call returns, the interceptors
    /// of this server run.
    private(set) var wasForwarded = false
    /// Fires at the deadline.
    var timer: LoopTimer?
    /// The row in which its time is counted; nil if it calls no method.
    var row: Int?
    /// The observed call, while event handlers or spans need it. A call that outlives the connection shares it, but reports no
    /// second end.
    var observedCall: ObservedCall?
    /// The queue in which it runs on another reactor. Set before it is sent.
    var crossReactorQueue: CrossReactorCallQueue?
    /// The shard of its actor; nil for an actor without a reactor, and until the activation. Set before it is sent.
    var home: SystemShard?
    /// The caller when the call arrived, at a server that authenticates callers. Set before the call goes to another reactor.
    var caller: Caller?
    /// The rules and the principal that permitted it; nil at a server without rules.
    var permission: AuthorizationCache.Basis?
    /// Set for a `repeat`.
    var repeated: OriginalCall? { didSet { mayHaveRun = mayHaveRun || repeated != nil } }
    /// Set while interceptors run around it.
    var intercepted: InterceptedCall?
    /// The metadata of the method; nil without any. Set before the call goes to another reactor.
    private(set) var metadata: CallMetadata?
    /// Set when it has waited for the activation of an actor that may live on other servers: the caller's streams of the earlier
    /// activation may have queued behind it.
    var activatedActor: ActorName?
    /// Set for a stream that waits to start. Read and written in one step, so access needs no check.
    @exclusivity(unchecked) package var stream: RequestedStream?
    var streamedActor: ActorName? { stream?.actor }
    /// Set for a stream that its server resumes without a request: moves it to another server.
    var moveStream: (() -> Void)?
    private let task = Mutex(CancellableTaskSlot())

    /// - Parameter earlier: The withdrawn call that this one continues, with the same deadline.
    init(
        callID: [UInt8], after limit: Duration, on reactor: Reactor, byteCount: Int, isInTransit: Bool = false,
        continuing earlier: InFlightCall? = nil
    ) {
        timeAhead = earlier?.timeAhead ?? reactor.timeAhead
        began = earlier?.began ?? MonotonicClock.now
        deadline = earlier?.deadline ?? began &+ timeAhead &+ limit.nanoseconds
        self.callID = callID
        self.byteCount = byteCount
        self.isInTransit = isInTransit
        execution = nil
    }

    /// Creates the running call of a queued call.
    init(_ call: borrowing QueuedCall, at home: SystemShard) {
        timeAhead = home.reactor.timeAhead
        deadline = call.deadline &+ timeAhead
        began = call.deadline &- call.limit.nanoseconds
        callID = call.callID
        byteCount = call.bytes
        isInTransit = false
        execution = nil
        row = call.method.row
        self.home = home
        phase = .running
    }

    /// Creates the execution of an `@Idempotent` call, with the same deadline.
    init(of call: InFlightCall, _ execution: IdempotentExecution) {
        callID = call.callID
        (deadline, timeAhead, began) = (call.deadline, call.timeAhead, call.began)
        observedCall = call.observedCall
        caller = call.caller
        permission = call.permission
        metadata = call.metadata
        byteCount = 0
        isInTransit = false
        self.execution = execution
    }

    /// Takes over the interceptors of the withdrawn call that this one continues, and the metadata.
    func inherit(_ earlier: InFlightCall?, _ message: borrowing Message) {
        if let earlier, let intercepted = earlier.intercepted { inherit(intercepted, of: earlier) }
        if let metadata = intercepted?.metadata {
            self.metadata = metadata.isEmpty ? nil : metadata
        } else if message.hasMetadata {
            metadata = message.metadata
        }
    }

    /// Takes over the interceptors of a withdrawn call.
    func inherit(_ intercepted: InterceptedCall, of earlier: InFlightCall) {
        earlier.intercepted = nil
        self.intercepted = intercepted
        intercepted.call = self
    }

    /// The deadline by the monotonic clock.
    package var machineDeadline: UInt64 { deadline &- timeAhead }

    package func run(in task: Task<Void, Never>) { self.task.fill(task) }

    /// Indicates whether the caller waits no longer. May be read on any thread.
    package var isCancelled: Bool { task.isCancelled }

    // MARK: Phases

    /// Indicates whether the call was answered or withdrawn.
    var isAnswered: Bool {
        switch phase {
        case .ended, .continuing(isAnswered: true): true
        default: false
        }
    }

    /// The request to another server.
    package var forwarded: (any ForwardedRequest)? { if case .forwarded(let request) = phase { request } else { nil } }

    /// The execution that it waits for.
    var sharedExecution: InFlightCall? { if case .awaitingExecution(let run, _) = phase { run } else { nil } }

    /// The client's message, while the call waits for an execution of an actor that may move.
    var message: OwnedMessage? { if case .awaitingExecution(_, let message) = phase { message } else { nil } }

    /// Indicates whether work for the call continues after its end.
    var isContinuing: Bool { if case .continuing = phase { true } else { false } }

    /// The response of a stopping server to a call that still waits.
    enum ShutdownResponse {
        /// No response: the client repeats the call at the next owner of its actor, or at the next process.
        case none
        /// The call has not begun.
        case unavailable
        /// The call may have had an effect.
        case unknownOutcome
    }

    var shutdownResponse: ShutdownResponse {
        guard repeated == nil else { return .none }
        switch phase {
        case .awaitingExecution: return .none
        case .forwarded(let request):
            if request.isRepeatable { return .none }
            return request.mayHaveBegun ? .unknownOutcome : .unavailable
        case .running, .readingStore: return .unknownOutcome
        case .intercepted:
            guard intercepted?.hasOutcome == true else { return .unavailable }
            // The response of a call that may be repeated is recorded.
            return mayHaveRun ? .none : .unknownOutcome
        case .registered, .awaitingActivation, .awaitingStreams, .continuing, .abandoned, .ended: return .unavailable
        }
    }

    // MARK: Transitions

    /// Starts the wait for an activation.
    ///
    /// - Parameter waiter: nil if the wait has ended already.
    func awaitActivation(_ waiter: ActivationWaiter?) {
        guard let waiter else { return }
        if case .registered = phase { phase = .awaitingActivation(waiter) } else { waiter.cancel() }
    }

    /// Ends the wait for an activation. Returns false if the call has ended.
    func endActivationWait() -> Bool {
        if case .awaitingActivation = phase { phase = .registered }
        return !isAnswered
    }

    /// Starts work whose end is reported to ``endWork()``.
    func beginWork() { if case .registered = phase { phase = .running } }

    /// Starts the search for the record of an earlier execution, whose end is reported to ``endWork()``.
    func beginStoreRead() { if case .registered = phase { phase = .readingStore } }

    /// Starts the work of interceptors, whose end is reported to ``endWork()``. Returns the phase that has ended, for its resources;
    /// nil if they cannot run.
    func beginInterception() -> Phase? {
        let last = phase
        switch phase {
        case .registered, .awaitingExecution, .awaitingStreams: phase = .intercepted
        default: return nil
        }
        return last
    }

    /// Ends the work. Returns true if the call was only counted because of it.
    func endWork() -> Bool {
        switch phase {
        case .running, .readingStore, .intercepted: phase = .registered
        case .continuing(let isAnswered):
            phase = isAnswered ? .ended : .abandoned
            return true
        case .registered, .awaitingActivation, .awaitingExecution, .forwarded, .awaitingStreams, .abandoned, .ended:
            break
        }
        return false
    }

    /// Starts the wait for an execution, or continues it for another one.
    func awaitExecution(_ run: InFlightCall, _ message: OwnedMessage?) {
        switch phase {
        case .registered, .awaitingExecution: phase = .awaitingExecution(run, message)
        default: return
        }
        mayHaveRun = true
    }

    /// Passes the call to another server.
    package func forward(_ request: any ForwardedRequest) {
        guard case .registered = phase else { return }
        phase = .forwarded(request)
        (mayHaveRun, wasForwarded) = (true, true)
    }

    /// Starts the wait of the response for streams. Returns false if it cannot wait.
    func awaitStreams(_ barrier: ResponseBarrier) -> Bool {
        switch phase {
        case .registered, .awaitingExecution, .forwarded: phase = .awaitingStreams(barrier)
        default: return false
        }
        return true
    }

    /// Ends the call. Returns the phase that has ended, for its resources; nil if the call was answered before.
    ///
    /// - Parameter isAnswered: False if its connection is closed. The outcome of the call is reported to event handlers later.
    func end(isAnswered: Bool = true) -> Phase? {
        let last = phase
        switch phase {
        case .ended, .continuing(isAnswered: true): return nil
        case .running, .readingStore, .intercepted, .continuing: phase = .continuing(isAnswered: isAnswered)
        case .registered, .awaitingActivation, .awaitingExecution, .forwarded, .awaitingStreams, .abandoned:
            phase = isAnswered ? .ended : .abandoned
        }
        timer?.cancel()
        if case .awaitingActivation(let waiter) = last { waiter.cancel() }
        moveStream = nil
        if !isAnswered {
            task.cancel()
            intercepted?.abandon()
        }
        return last
    }

    /// Counts work that continues after the end of the call: its message is on the way to another server.
    func continueWork() {
        switch phase {
        case .ended: phase = .continuing(isAnswered: true)
        case .abandoned: phase = .continuing(isAnswered: false)
        default: break
        }
    }

    /// Cancels the call: its caller waits no longer. Its outcome follows.
    func cancel() {
        intercepted?.cancel()
        switch phase {
        case .awaitingActivation(let waiter):
            waiter.cancel()
            phase = .registered
            execution?.didStopWaiting(self)
        case .forwarded(let request): request.cancel()
        case .awaitingExecution(let run, _): run.execution?.shard.reactor.run { run.cancel() }
        default: break
        }
        task.cancel()
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

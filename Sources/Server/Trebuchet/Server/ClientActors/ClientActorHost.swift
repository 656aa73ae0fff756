internal import Networking
internal import Platform
internal import Synchronization
internal import Transports
internal import TrebuchetWire

/// A client that has exported actors: its state on the server, over all of its connections. It exists while the client is
/// connected, and for `ServerLimits.clientActors.reconnectTime` after that.
final class ClientActorHost: Sendable {
    /// The client whose message is being decoded.
    @TaskLocal static var current: ClientActorHost?

    let key: ClientActorHosts.Key
    /// A number for names and messages; it is no secret.
    let number: UInt64
    let clients: ClientActorHosts
    /// The reactor of its first connection.
    let reactor: Reactor
    var limits: ServerLimits { clients.limits }
    /// The account in which its references and the calls to it count.
    private let account: QuotaAccount

    /// A weak reference to a `ClientActorReference`.
    private struct Reference {
        weak var object: ClientActorReference?
    }

    /// The references by actor name.
    private struct References {
        var byName: [ActorName: Reference] = [:]
        /// The error for new references after the end.
        var end: TrebuchetError?
    }

    private let references = Mutex(References())
    private let lastNumber = Atomic<UInt64>(0)
    private let state: LoopVariable<State>

    /// A call without a response.
    private struct PendingCall {
        let call: OutboundClientCall
        let continuation: CheckedContinuation<[UInt8]?, any Error>
        /// Its use of the quotas for calls to clients.
        let reservation: QuotaReservation
        /// The connection of the call; nil while the call waits for one.
        var connection: ClientActorHostConnection?
    }

    /// The connection and the calls, on the reactor.
    private struct State {
        /// The current connection.
        var connection: ClientActorHostConnection?
        /// True if the current connection accepts no calls at the moment.
        var isFull = false
        var attached = 0
        var calls: [UInt64: PendingCall] = [:]
        /// The numbers of unsent calls in their order; some may have ended.
        var waiting: [UInt64] = []
        var deadlineTimer: LoopTimer?
        var deadlineTimerTime = UInt64.max
        var grace: LoopTimer?
        var hasEnded = false
    }

    init(
        _ key: ClientActorHosts.Key, _ number: UInt64, _ clients: ClientActorHosts, _ scopes: QuotaScopes,
        _ reactor: Reactor
    ) {
        self.key = key
        self.number = number
        self.clients = clients
        self.reactor = reactor
        state = LoopVariable(State(), on: reactor)
        account = clients.quotas.account(for: scopes, own: .client(number))
    }

    // MARK: References

    /// Returns the reference for a name in the message that is being decoded.
    static func reference(to name: String) throws(TrebuchetError) -> ClientActorReference {
        guard let client = current else { throw TrebuchetActorID.notAcceptedError }
        guard (1...ActorName.longest).contains(name.utf8.count) else {
            throw TrebuchetError(.invalidArguments, "the name of an actor has 1 to \(ActorName.longest) bytes")
        }
        return try client.reference(to: ActorName(name))
    }

    private func reference(to name: ActorName) throws(TrebuchetError) -> ClientActorReference {
        // If another thread was faster, the unused reservation is released outside of the lock.
        if let known = try known(name) { return known }
        let created = ClientActorReference(name, of: self, try clients.quotas.reserve(.clientActors, in: account))
        return try references.withLock { references throws(TrebuchetError) in
            if let end = references.end { throw end }
            if let other = references.byName[name]?.object { return other }
            references.byName[name] = Reference(object: created)
            return created
        }
    }

    private func known(_ name: ActorName) throws(TrebuchetError) -> ClientActorReference? {
        try references.withLock { references throws(TrebuchetError) in
            if let end = references.end { throw end }
            return references.byName[name]?.object
        }
    }

    /// Called when the last user has released a reference.
    func didRelease(_ name: ActorName) {
        let (other, isLast) = references.withLock { references in
            // Another thread may have created a new reference during this deinit.
            if let other = references.byName[name]?.object { return (other as ClientActorReference?, false) }
            references.byName[name] = nil
            return (nil, references.byName.isEmpty)
        }
        // Keep `other` alive until the lock is released: if it were freed within it, its deinit would lock again.
        withExtendedLifetime(other) {}
        if isLast { reactor.execute { self.endIfUnused() } }
    }

    /// The number of its actors that are referenced.
    var referenceCount: Int { references.withLock { $0.byName.count } }

    // MARK: Calls

    /// Sends a call and waits for its response: the result in JSON, nil for a method without one.
    func call(_ actor: String, _ target: String, _ request: CallRequest) async throws -> [UInt8]? {
        let now = reactor.now
        let callerDeadline = Deadline.current.map { $0 &+ reactor.timeAhead } ?? .max
        guard callerDeadline > now else {
            throw TrebuchetError(.timeout, "the deadline had passed before \(target) was called")
        }
        let own = now &+ limits.clientCalls.timeout.nanoseconds
        let number = lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
        let traced = TraceContext.current.map { TracedCall(of: $0, isReported: clients.events.isEnabled(for: .spans)) }
        let call = OutboundClientCall(
            number: number, actor: actor, target: target, request: request, deadline: min(own, callerDeadline),
            isLimit: own < callerDeadline, traceparent: traced?.context.traceparent)
        do {
            let result: [UInt8]? = try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    reactor.run { self.start(call, continuation) }
                }
            } onCancel: {
                call.isCancelled.store(true, ordering: .relaxed)
                reactor.execute { self.abandonCall(number, CancellationError()) }
            }
            if let traced { reportCallEnd(traced, call, nil) }
            return result
        } catch {
            if let traced { reportCallEnd(traced, call, error) }
            throw error
        }
    }

    private func reportCallEnd(_ traced: TracedCall, _ call: OutboundClientCall, _ error: (any Error)?) {
        guard let span = traced.span(call.target, of: call.actor, error) else { return }
        clients.events.emit(.spanEnded(span))
    }

    private func start(_ call: OutboundClientCall, _ continuation: CheckedContinuation<[UInt8]?, any Error>) {
        if call.isCancelled.load(ordering: .relaxed) { return continuation.resume(throwing: CancellationError()) }
        do throws(TrebuchetError) {
            if let end = references.withLock({ $0.end }) { throw end }
            let reservation = try clients.quotas.reserve(
                .clientCalls, with: (.clientCallBytes, call.byteCount), in: account)
            state.value.calls[call.number] = PendingCall(
                call: call, continuation: continuation, reservation: reservation)
        } catch {
            return continuation.resume(throwing: error)
        }
        if call.deadline < state.value.deadlineTimerTime { scheduleDeadlineCheck(call.deadline) }
        state.value.waiting.append(call.number)
        if state.value.waiting.count == 1 { sendWaiting() }
    }

    /// Sends the waiting calls until the connection is full.
    private func sendWaiting() {
        guard let connection = state.value.connection, !state.value.isFull else { return }
        var sent = 0
        // A call that does not fit, or fills the connection, changes this state while it is sent.
        while !state.value.isFull, sent < state.value.waiting.count {
            let number = state.value.waiting[sent]
            if let call = state.value.calls[number]?.call {
                state.value.calls[number]?.connection = connection
                connection.reactor.run { connection.send(call) }
            }
            sent += 1
        }
        state.value.waiting.removeFirst(sent)
    }

    /// Ends a call with its response or an error.
    func finish(_ number: UInt64, _ outcome: Result<[UInt8]?, any Error>) {
        guard let pending = state.value.calls.removeValue(forKey: number) else { return }
        pending.reservation.release()
        pending.continuation.resume(with: outcome)
    }

    /// Ends a call after cancellation or timeout, and notifies the client.
    private func abandonCall(_ number: UInt64, _ error: any Error) {
        guard let pending = state.value.calls[number] else { return }
        if let connection = pending.connection {
            connection.reactor.run { connection.cancel(number) }
        } else {
            state.value.waiting.removeAll { $0 == number }
        }
        finish(number, .failure(error))
    }

    private func scheduleDeadlineCheck(_ deadline: UInt64) {
        state.value.deadlineTimer?.cancel()
        state.value.deadlineTimerTime = deadline
        let now = reactor.now
        let delay = Duration.nanoseconds(Int64(clamping: deadline > now ? deadline - now : 0))
        state.value.deadlineTimer = reactor.schedule(after: delay, for: self) { $0.expire() }
    }

    private func expire() {
        let now = reactor.now
        var next = UInt64.max
        for (number, pending) in state.value.calls {
            if pending.call.deadline > now {
                next = min(next, pending.call.deadline)
            } else {
                abandonCall(number, TrebuchetError(.timeout, timeoutMessage(of: pending)))
            }
        }
        state.value.deadlineTimerTime = .max
        if next != .max { scheduleDeadlineCheck(next) }
    }

    private func timeoutMessage(of pending: PendingCall) -> String {
        let call = pending.call
        let limit = call.isLimit ? " (\(limits.clientCalls.timeout), ServerLimits.clientCalls.timeout)" : ""
        if pending.connection != nil {
            return "\(call.target) had no response from the client before its deadline\(limit)"
        }
        let reason = state.value.connection == nil ? "the client is disconnected" : "the client accepts no more calls"
        return "\(call.target) was not sent before its deadline\(limit): \(reason)"
    }

    // MARK: Connections

    /// Sets the client's connection, replacing an earlier one.
    func attach(_ connection: ClientActorHostConnection) {
        state.value.attached += 1
        guard !state.value.hasEnded else { return }
        state.value.grace?.cancel()
        state.value.grace = nil
        let old = state.value.connection
        state.value.connection = connection
        state.value.isFull = false
        sendWaiting()
        if let old { old.reactor.run { old.close() } }
    }

    /// Stops sending over the connection until `resume`.
    func pauseSending(_ connection: ClientActorHostConnection) {
        if connection === state.value.connection { state.value.isFull = true }
    }

    func resume(_ connection: ClientActorHostConnection) {
        guard connection === state.value.connection else { return }
        state.value.isFull = false
        sendWaiting()
    }

    /// Handles a closed connection: calls sent over it without a response end with `unknownOutcome`.
    func lost(_ lost: ClientActorHostConnection) {
        var unsent: [UInt64] = []
        for (number, pending) in state.value.calls where pending.connection === lost {
            if pending.call.wasSent.load(ordering: .acquiring) {
                finish(number, .failure(unknown(pending.call, "the connection to the client was lost")))
            } else {
                state.value.calls[number]?.connection = nil
                unsent.append(number)
            }
        }
        if !unsent.isEmpty { state.value.waiting = (state.value.waiting + unsent).sorted() }
        guard lost === state.value.connection else { return sendWaiting() }
        state.value.connection = nil
        guard referenceCount > 0 else { return endIfUnused() }
        beginGrace()
    }

    private func beginGrace() {
        state.value.grace = reactor.schedule(after: limits.clientActors.reconnectTime, for: self) { client in
            client.state.value.grace = nil
            client.endIfRemoved(
                "was disconnected for more than \(client.limits.clientActors.reconnectTime) (ServerLimits.clientActors.reconnectTime)"
            )
        }
    }

    private func unknown(_ call: OutboundClientCall, _ reason: String) -> TrebuchetError {
        TrebuchetError(.unknownOutcome, "\(call.target) has no response: \(reason)")
    }

    // MARK: Ending

    private func endIfUnused() {
        guard state.value.connection == nil, referenceCount == 0 else { return }
        endIfRemoved("is disconnected")
    }

    private func endIfRemoved(_ reason: String) {
        guard !state.value.hasEnded, clients.remove(self, attached: state.value.attached) else { return }
        invalidateReferences(reason)
    }

    /// Ends the client permanently. Callable from any thread: operations after it neither create references nor make calls.
    func close(_ reason: String) {
        references.withLock { $0.end = $0.end ?? Self.unavailableError(reason) }
        reactor.run { self.invalidateReferences(reason) }
    }

    private static func unavailableError(_ reason: String) -> TrebuchetError {
        TrebuchetError(.unavailable, "the client of the actor \(reason)")
    }

    /// Invalidates all references to actors of the client.
    private func invalidateReferences(_ reason: String) {
        guard !state.value.hasEnded else { return }
        state.value.hasEnded = true
        _ = clients.remove(self, attached: nil)
        let (error, released) = references.withLock { references in
            let error = references.end ?? Self.unavailableError(reason)
            references.end = error
            return (error, references.byName.values.compactMap(\.object))
        }
        // An invalid reference uses no resource, so its reservation is released.
        for reference in released { reference.reservation.release() }
        state.value.deadlineTimer?.cancel()
        state.value.grace?.cancel()
        state.value.grace = nil
        state.value.waiting = []
        for (number, pending) in state.value.calls {
            let mayHaveRun = pending.call.wasSent.load(ordering: .acquiring)
            finish(number, .failure(mayHaveRun ? unknown(pending.call, error.message) : error))
        }
        state.value.connection = nil
    }
}

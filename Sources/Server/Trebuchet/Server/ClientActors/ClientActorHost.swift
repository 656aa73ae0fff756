internal import Networking
internal import Platform
internal import Synchronization
internal import Transports
internal import TrebuchetWire

/// A client that has exported actors: its state on the server, over all of its connections. It exists while the client is
/// connected, and for `ServerLimits.clientActors.reconnectTime` after that.
///
/// `@unchecked Sendable`: mutable state is used on `reactor` only, except the references, which have a lock.
final class ClientActorHost: @unchecked Sendable {
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
    /// The current connection.
    private var connection: ClientActorHostConnection?
    /// True if the current connection accepts no calls at the moment.
    private var isFull = false
    private var attached = 0
    private var calls: [UInt64: OutboundClientCall] = [:]
    /// The numbers of unsent calls in their order; some may have ended.
    private var waiting: [UInt64] = []
    private var deadlineTimer: LoopTimer?
    private var deadlineTimerTime = UInt64.max
    private var grace: LoopTimer?
    private var hasEnded = false

    init(
        _ key: ClientActorHosts.Key, _ number: UInt64, _ clients: ClientActorHosts, _ scopes: QuotaScopes,
        _ reactor: Reactor
    ) {
        self.key = key
        self.number = number
        self.clients = clients
        self.reactor = reactor
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
                    call.setContinuation(continuation)
                    reactor.run { self.start(call) }
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

    private func start(_ call: OutboundClientCall) {
        if call.isCancelled.load(ordering: .relaxed) { return call.finish(.failure(CancellationError())) }
        do throws(TrebuchetError) {
            if let end = references.withLock({ $0.end }) { throw end }
            call.reservation = try clients.quotas.reserve(
                .clientCalls, with: (.clientCallBytes, call.byteCount), in: account)
        } catch {
            return call.finish(.failure(error))
        }
        calls[call.number] = call
        if call.deadline < deadlineTimerTime { scheduleDeadlineCheck(call.deadline) }
        waiting.append(call.number)
        if waiting.count == 1 { sendWaiting() }
    }

    /// Sends the waiting calls until the connection is full.
    private func sendWaiting() {
        guard let connection, !isFull, !waiting.isEmpty else { return }
        var sent = 0
        // A call that does not fit, or fills the connection, changes this state while it is sent.
        while !isFull, sent < waiting.count {
            if let call = calls[waiting[sent]] {
                call.connection = connection
                connection.reactor.run { connection.send(call) }
            }
            sent += 1
        }
        waiting.removeFirst(sent)
    }

    /// Ends a call with its response or an error.
    func finish(_ number: UInt64, _ outcome: Result<[UInt8]?, any Error>) {
        guard let call = calls.removeValue(forKey: number) else { return }
        call.finish(outcome)
    }

    /// Ends a call after cancellation or timeout, and notifies the client.
    private func abandonCall(_ number: UInt64, _ error: any Error) {
        guard let call = calls[number] else { return }
        if let connection = call.connection {
            connection.reactor.run { connection.cancel(number) }
        } else {
            waiting.removeAll { $0 == number }
        }
        finish(number, .failure(error))
    }

    private func scheduleDeadlineCheck(_ deadline: UInt64) {
        deadlineTimer?.cancel()
        deadlineTimerTime = deadline
        let now = reactor.now
        let delay = Duration.nanoseconds(Int64(clamping: deadline > now ? deadline - now : 0))
        deadlineTimer = reactor.schedule(after: delay, for: self) { $0.expire() }
    }

    private func expire() {
        let now = reactor.now
        var next = UInt64.max
        for (number, call) in calls {
            if call.deadline > now {
                next = min(next, call.deadline)
            } else {
                abandonCall(number, TrebuchetError(.timeout, timeoutMessage(of: call)))
            }
        }
        deadlineTimerTime = .max
        if next != .max { scheduleDeadlineCheck(next) }
    }

    private func timeoutMessage(of call: OutboundClientCall) -> String {
        let limit = call.isLimit ? " (\(limits.clientCalls.timeout), ServerLimits.clientCalls.timeout)" : ""
        if call.connection != nil {
            return "\(call.target) had no response from the client before its deadline\(limit)"
        }
        let reason = connection == nil ? "the client is disconnected" : "the client accepts no more calls"
        return "\(call.target) was not sent before its deadline\(limit): \(reason)"
    }

    // MARK: Connections

    /// Sets the client's connection, replacing an earlier one.
    func attach(_ connection: ClientActorHostConnection) {
        attached += 1
        guard !hasEnded else { return }
        grace?.cancel()
        grace = nil
        let old = self.connection
        self.connection = connection
        isFull = false
        sendWaiting()
        if let old { old.reactor.run { old.close() } }
    }

    /// Stops sending over the connection until `resume`.
    func pauseSending(_ connection: ClientActorHostConnection) {
        if connection === self.connection { isFull = true }
    }

    func resume(_ connection: ClientActorHostConnection) {
        guard connection === self.connection else { return }
        isFull = false
        sendWaiting()
    }

    /// Handles a closed connection: calls sent over it without a response end with `unknownOutcome`.
    func lost(_ lost: ClientActorHostConnection) {
        var unsent: [UInt64] = []
        for (number, call) in calls where call.connection === lost {
            if call.wasSent {
                finish(number, .failure(unknown(call, "the connection to the client was lost")))
            } else {
                call.connection = nil
                unsent.append(number)
            }
        }
        if !unsent.isEmpty { waiting = (waiting + unsent).sorted() }
        guard lost === connection else { return sendWaiting() }
        connection = nil
        guard referenceCount > 0 else { return endIfUnused() }
        beginGrace()
    }

    private func beginGrace() {
        grace = reactor.schedule(after: limits.clientActors.reconnectTime, for: self) { client in
            client.grace = nil
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
        guard connection == nil, referenceCount == 0 else { return }
        endIfRemoved("is disconnected")
    }

    private func endIfRemoved(_ reason: String) {
        guard !hasEnded, clients.remove(self, attached: attached) else { return }
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
        guard !hasEnded else { return }
        hasEnded = true
        _ = clients.remove(self, attached: nil)
        let (error, released) = references.withLock { references in
            let error = references.end ?? Self.unavailableError(reason)
            references.end = error
            return (error, references.byName.values.compactMap(\.object))
        }
        // An invalid reference uses no resource, so its reservation is released.
        for reference in released { reference.reservation.release() }
        deadlineTimer?.cancel()
        grace?.cancel()
        grace = nil
        waiting = []
        for (number, call) in calls {
            finish(number, .failure(call.wasSent ? unknown(call, error.message) : error))
        }
        connection = nil
    }
}

internal import Networking
internal import Platform
internal import Synchronization
internal import Transports
internal import TrebuchetWire

/// A client that has handed over references to actors of its own: what the server knows of it, over all of its connections. It is
/// kept while it is connected, and as long as `ServerLimits.clientGrace` after that.
///
/// `@unchecked Sendable`: what can change is touched on `reactor` alone, but for the references, which have a lock.
final class HostingClient: @unchecked Sendable {
    /// The client whose message is decoded.
    @TaskLocal static var current: HostingClient?

    let key: HostingClients.Key
    /// For names and messages; it is no secret.
    let number: UInt64
    let clients: HostingClients
    /// That of its first connection.
    let reactor: Reactor
    var limits: ServerLimits { clients.limits }
    /// Whose shares its references count in.
    private let holders: [Party]

    private struct Reference {
        weak var object: ClientActorReference?
    }

    private struct References {
        var byName: [ActorName: Reference] = [:]
        /// Why there are no new ones.
        var end: TrebuchetError?
    }

    private let references = Mutex(References())
    private let lastNumber = Atomic<UInt64>(0)
    private let shares: ClientCallShares
    /// The connection of now.
    private var connection: HostingConnection?
    /// Whether that takes no calls at the moment.
    private var isFull = false
    private var attached = 0
    private var calls: [UInt64: ClientCall] = [:]
    /// Those that are not sent, in their order; some may have ended.
    private var waiting: [UInt64] = []
    private var sweep: LoopTimer?
    private var sweepAt = UInt64.max
    private var grace: LoopTimer?
    private var hasEnded = false

    init(_ key: HostingClients.Key, _ number: UInt64, _ clients: HostingClients, _ parties: Parties, _ reactor: Reactor)
    {
        self.key = key
        self.number = number
        self.clients = clients
        self.reactor = reactor
        holders = [.client(number)] + parties.beyondConnection
        shares = ClientCallShares(clients.quotas, parties)
    }

    // MARK: References

    /// A reference that stands in a message which is being decoded.
    static func reference(to name: String) throws(TrebuchetError) -> ClientActorReference {
        guard let client = current else { throw TrebuchetActorID.notTaken }
        guard (1...ActorName.longest).contains(name.utf8.count) else {
            throw TrebuchetError(.invalidArguments, "the name of an actor has 1 to \(ActorName.longest) bytes")
        }
        return try client.reference(to: ActorName(name))
    }

    private func reference(to name: ActorName) throws(TrebuchetError) -> ClientActorReference {
        // The stake is given back outside of the lock if another one was faster.
        if let known = try known(name) { return known }
        let made = ClientActorReference(name, of: self, try clients.shares.take(.clientActors, for: holders))
        return try references.withLock { references throws(TrebuchetError) in
            if let end = references.end { throw end }
            if let other = references.byName[name]?.object { return other }
            references.byName[name] = Reference(object: made)
            return made
        }
    }

    private func known(_ name: ActorName) throws(TrebuchetError) -> ClientActorReference? {
        try references.withLock { references throws(TrebuchetError) in
            if let end = references.end { throw end }
            return references.byName[name]?.object
        }
    }

    /// Nobody has the reference any more.
    func didRelease(_ name: ActorName) {
        let (other, isLast) = references.withLock { references in
            // Another one may have taken its place while this one went.
            if let other = references.byName[name]?.object { return (other as ClientActorReference?, false) }
            references.byName[name] = nil
            return (nil, references.byName.isEmpty)
        }
        // Held until here: freed within the lock, it would come here again.
        withExtendedLifetime(other) {}
        if isLast { reactor.execute { self.endIfUnused() } }
    }

    /// How many actors of it somebody has a reference to.
    var referenceCount: Int { references.withLock { $0.byName.count } }

    // MARK: Calls

    /// Sends a call and waits for its answer: the result in JSON, nil for a method without one.
    func call(_ actor: String, _ target: String, _ request: CallRequest) async throws -> [UInt8]? {
        let now = reactor.now
        let asked = Deadline.current.map { $0 &+ reactor.timeAhead } ?? .max
        guard asked > now else {
            throw TrebuchetError(.timeout, "the deadline had passed before \(target) was called")
        }
        let own = now &+ limits.clientCallTimeout.nanoseconds
        let number = lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
        let traced = TraceContext.current.map { TracedCall(of: $0, isTold: clients.events.wants(.spans)) }
        let call = ClientCall(
            number: number, actor: actor, target: target, request: request, deadline: min(own, asked),
            isLimit: own < asked, traceparent: traced?.context.traceparent)
        do {
            let result: [UInt8]? = try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    call.begin(continuation)
                    reactor.run { self.start(call) }
                }
            } onCancel: {
                call.isCancelled.store(true, ordering: .relaxed)
                reactor.execute { self.giveUp(number, CancellationError()) }
            }
            if let traced { end(traced, call, nil) }
            return result
        } catch {
            if let traced { end(traced, call, error) }
            throw error
        }
    }

    private func end(_ traced: TracedCall, _ call: ClientCall, _ error: (any Error)?) {
        guard let span = traced.span(call.target, of: call.actor, error) else { return }
        clients.events.tell(.spanEnded(span))
    }

    private func start(_ call: ClientCall) {
        if call.isCancelled.load(ordering: .relaxed) { return call.finish(.failure(CancellationError())) }
        do throws(TrebuchetError) {
            if let end = references.withLock({ $0.end }) { throw end }
            try shares.take(call.byteCount)
        } catch {
            return call.finish(.failure(error))
        }
        calls[call.number] = call
        if call.deadline < sweepAt { armSweep(call.deadline) }
        waiting.append(call.number)
        if waiting.count == 1 { sendWaiting() }
    }

    /// Sends the calls that wait, as far as the connection takes them.
    private func sendWaiting() {
        guard let connection, !isFull, !waiting.isEmpty else { return }
        var sent = 0
        // A call that does not fit, or fills the connection, is told of while it is sent.
        while !isFull, sent < waiting.count {
            if let call = calls[waiting[sent]] {
                call.connection = connection
                connection.reactor.run { connection.send(call) }
            }
            sent += 1
        }
        waiting.removeFirst(sent)
    }

    /// The answer has come, or there is none.
    func finish(_ number: UInt64, _ outcome: Result<[UInt8]?, any Error>) {
        guard let call = calls.removeValue(forKey: number) else { return }
        shares.release(call.byteCount)
        call.finish(outcome)
    }

    /// Ends a call for which nobody waits any more.
    private func giveUp(_ number: UInt64, _ error: any Error) {
        guard let call = calls[number] else { return }
        if let connection = call.connection {
            connection.reactor.run { connection.cancel(number) }
        } else {
            waiting.removeAll { $0 == number }
        }
        finish(number, .failure(error))
    }

    private func armSweep(_ deadline: UInt64) {
        sweep?.cancel()
        sweepAt = deadline
        let now = reactor.now
        let delay = Duration.nanoseconds(Int64(clamping: deadline > now ? deadline - now : 0))
        sweep = reactor.schedule(after: delay, for: self) { $0.expire() }
    }

    private func expire() {
        let now = reactor.now
        var next = UInt64.max
        for (number, call) in calls {
            if call.deadline > now {
                next = min(next, call.deadline)
            } else {
                giveUp(number, TrebuchetError(.timeout, lateness(of: call)))
            }
        }
        sweepAt = .max
        if next != .max { armSweep(next) }
    }

    private func lateness(of call: ClientCall) -> String {
        let limit = call.isLimit ? " (\(limits.clientCallTimeout), ServerLimits.clientCallTimeout)" : ""
        if call.connection != nil { return "\(call.target) was not answered by the client before its deadline\(limit)" }
        let reason = connection == nil ? "the client is away" : "the client takes no more calls"
        return "\(call.target) was not sent before its deadline\(limit): \(reason)"
    }

    // MARK: Connections

    /// The client has a connection, in the place of the one that it may have had.
    func attach(_ connection: HostingConnection) {
        attached += 1
        guard !hasEnded else { return }
        grace?.cancel()
        grace = nil
        let old = self.connection
        self.connection = connection
        isFull = false
        sendWaiting()
        if let old { old.reactor.run { old.end() } }
    }

    /// The connection takes no calls until `resume`.
    func hold(_ connection: HostingConnection) {
        if connection === self.connection { isFull = true }
    }

    func resume(_ connection: HostingConnection) {
        guard connection === self.connection else { return }
        isFull = false
        sendWaiting()
    }

    /// A connection has gone: what was sent over it and not answered will not be any more.
    func lost(_ lost: HostingConnection) {
        var unsent: [UInt64] = []
        for (number, call) in calls where call.connection === lost {
            if call.wasSent {
                finish(number, .failure(unknown(call, "the connection to the client broke")))
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
        grace = reactor.schedule(after: limits.clientGrace, for: self) { client in
            client.grace = nil
            client.endUnlessOnItsWay("is away for more than \(client.limits.clientGrace) (ServerLimits.clientGrace)")
        }
    }

    private func unknown(_ call: ClientCall, _ reason: String) -> TrebuchetError {
        TrebuchetError(.unknownOutcome, "\(call.target) was not answered: \(reason)")
    }

    // MARK: The end

    private func endIfUnused() {
        guard connection == nil, referenceCount == 0 else { return }
        endUnlessOnItsWay("is away")
    }

    private func endUnlessOnItsWay(_ reason: String) {
        guard !hasEnded, clients.forget(self, attached: attached) else { return }
        end(reason)
    }

    /// The client will not come back. From anywhere: nothing that comes after this takes a reference, or makes a call.
    func close(_ reason: String) {
        references.withLock { $0.end = $0.end ?? Self.gone(reason) }
        reactor.run { self.end(reason) }
    }

    private static func gone(_ reason: String) -> TrebuchetError {
        TrebuchetError(.unavailable, "the client of the actor \(reason)")
    }

    /// References to actors of the client mean nothing any more.
    private func end(_ reason: String) {
        guard !hasEnded else { return }
        hasEnded = true
        _ = clients.forget(self, attached: nil)
        let (error, released) = references.withLock { references in
            let error = references.end ?? Self.gone(reason)
            references.end = error
            return (error, references.byName.values.compactMap(\.object))
        }
        // They are values like any other from now on.
        for reference in released { reference.stake.giveBack() }
        sweep?.cancel()
        grace?.cancel()
        grace = nil
        waiting = []
        for (number, call) in calls {
            finish(number, .failure(call.wasSent ? unknown(call, error.message) : error))
        }
        connection = nil
    }
}

internal import Bytes
internal import Networking
internal import Platform
internal import Synchronization
internal import Transports
package import TrebuchetActors
internal import TrebuchetWire

/// Executes calls. Each scanned call takes the same steps: find the actor and the target, run interceptors, check authorization and
/// rates, check the number of arguments, activate the actor if necessary, and call the method. Code of actors never runs for an
/// unauthorized caller.
extension ServerConnection {
    func invoke(_ message: borrowing Message) {
        let name = message.envelope.pointee.actorID
        if !name.isEscaped, let record = shard.record(message.bytes(name)) {
            let isHere = record._withUnsafeGuaranteedRef { record in
                guard !record.isClustered || shard.isOwned(record) else { return false }
                invoke(record, message)
                return true
            }
            if isHere { return }
        }
        guard hasName(message) else { return }
        route(message, to: location(of: message))
    }

    /// Returns whether an actor may have the name; false after the message was refused. A longer name is not stored anywhere.
    func hasName(_ message: borrowing Message) -> Bool {
        // The unescaped name is never longer than its written form.
        guard message.bytes(message.envelope.pointee.actorID).count > ActorName.longest else { return true }
        let name = ActorName(message.actorName)
        guard name.isTooLong, shard.directory.type(of: name) == nil else { return true }
        fail(message, shard.context.hasRates ? rateRefusal(of: message.target) ?? ActorName.tooLong : ActorName.tooLong)
        return false
    }

    func location(of message: borrowing Message) -> ActorLocation {
        shard.location(of: ActorName(message.actorName))
    }

    /// Returns whether the actor lives on one server of several.
    func isClustered(_ name: ActorName) -> Bool {
        shard.context.router != nil && shard.directory.clusteredType(of: name) != nil
    }

    @inline(__always)
    private func invoke(_ record: ActorRecord, _ message: borrowing Message) {
        let target = message.envelope.pointee.targetIdentifier
        if !target.isEscaped, let method = record.type.method(message.bytes(target)) {
            return method._withUnsafeGuaranteedRef { call($0, of: record, message) }
        }
        route(message, to: .ready(record))
    }

    /// The hot path, which most calls take: methods that run in place and need no authorization. It performs no further checks.
    @inline(__always)
    private func call(_ method: ActorMethod, of record: ActorRecord, _ message: borrowing Message) {
        guard !isGuarded, !method.isChecked.load(ordering: .relaxed), hasCounts(method, message),
            message.envelope.pointee.metadata.isAbsent
        else {
            return route(message, to: .ready(record), method)
        }
        switch CallRouter.inPlacePath(of: CallTraits(method, of: record, at: shard)) {
        case .inPlace?: callInPlace(record, method, message)
        case .observed?: callObserved(record, method, message)
        default: route(message, to: .ready(record), method)
        }
    }

    @inline(__always)
    func hasCounts(_ method: ActorMethod, _ message: borrowing Message) -> Bool {
        message.envelope.pointee.arguments.count == method.arguments
            && message.envelope.pointee.genericSubstitutions.count == method.generics
    }

    /// Routes a call whose method is not looked up yet.
    private func route(_ message: borrowing Message, to location: ActorLocation) {
        switch location.type?.target(message.target) {
        case .method(let method)?: method._withUnsafeGuaranteedRef { route(message, to: location, $0) }
        case .stream(let stream)? where location.isOnThisServer:
            if let type = location.type, isIntercepted(message, stream, nil, of: type) { return }
            guard mayPass(stream, of: location.record, message) else { return }
            startStream(stream, of: location.record, message)
        default: route(message, to: location, nil)
        }
    }

    /// Checks a call, and executes it on the path that the router selects.
    ///
    /// - Parameter method: nil if the actor or the method is unknown.
    @inline(never)
    private func route(_ message: borrowing Message, to location: ActorLocation, _ method: ActorMethod?) {
        let record = location.record
        // A call that is forwarded has its checks there.
        if location.isOnThisServer {
            let target = method?.name ?? message.target
            if isGuarded(target) {
                if let method, let type = location.type {
                    if isQueuedBehindOthers(message) || isIntercepted(message, target, method, of: type) { return }
                }
                guard mayPass(target, of: record, message) else { return }
            }
        }
        var traits = CallTraits(method, at: location, message, at: shard)
        traits.isIntercepted = continuedCall?.intercepted != nil
        traits.isOpen = isOpen
        traits.isOfOtherServer = upstream != nil
        traits.isCounted = isCounted
        traits.hostsActors = clientActorHost != nil
        let path = CallRouter.path(of: traits) { mayBeDuplicate(message, in: traits.place) }
        switch path {
        case .forwarded:
            if case .elsewhere(let type) = location { return forward(type, message) }
        case .rejected(let rejection): return fail(message, rejection.error(of: method, location.type, message))
        case .inPlace, .observed, .persisted, .queued, .crossReactor, .task, .idempotent: break
        }
        guard let method else { return }
        if path == .idempotent { return idempotentCalls.callOnce(method, of: record, message) }
        if let record, call(method, of: record, message, on: path) { return }
        startCall(method, of: record, message, isInTransit: CallRouter.runsInPlaceElsewhere(traits))
    }

    /// Executes a call on a path that needs no task. Returns false if it needs one; nothing has been done then.
    private func call(
        _ method: ActorMethod, of record: ActorRecord, _ message: borrowing Message, on path: CallPath
    ) -> Bool {
        switch path {
        case .inPlace:
            shard.continued = nil
            callInPlace(record, method, message)
            return true
        case .observed:
            shard.continued = nil
            callObserved(record, method, message)
            return true
        case .persisted: return record.persisted.map { callPersisted(record, $0, method, message) } ?? false
        case .queued: return enqueue(method, record, message)
        case .crossReactor: return cross(method, of: record, message)
        case .task:
            if record.home === shard.states { shard.calls.didStartSeparately(record) }
            return false
        case .idempotent, .forwarded, .rejected: return false
        }
    }

    /// Returns true if another call of the connection may have the callID of the message. Calls are compared exactly where they are
    /// registered, queued calls included.
    private func mayBeDuplicate(_ message: borrowing Message, in place: CallTraits.Place) -> Bool {
        let mayBeQueued = place == .thisReactor && calls.queued > 0
        guard mayBeQueued || !calls.listed.isEmpty else { return false }
        let callID = Array(message.callID)
        return calls[callID] != nil || mayBeQueued && shard.calls.mayHave(callID, of: self)
    }

    /// Checks authorization and rates; returns false after a refusal.
    ///
    /// - Parameter record: The actor's record, where it is known: it has the name as a string.
    func mayPass(_ target: String, of record: ActorRecord? = nil, _ message: borrowing Message) -> Bool {
        guard isGuarded(target), let refusal = refusal(of: target, record?.name ?? message.actorName) else {
            return true
        }
        fail(message, refusal)
        return false
    }

    /// Returns whether interceptors refuse a request or run around it in a task; false if the request continues now.
    ///
    /// - Parameter method: nil for a stream.
    func isIntercepted(
        _ message: borrowing Message, _ target: String, _ method: ActorMethod?, of type: ActorType
    ) -> Bool {
        // A message that is handled again has been intercepted, except at another server.
        guard let interceptors = shard.interceptors, !isServer,
            !isCounted || isReturnedResumption || continuedCall?.wasForwarded == true
        else { return false }
        return interceptors.intercept(message, target, method, of: type, over: self)
    }

    // MARK: In place

    /// Runs `body` with `Caller.current` set to this connection's caller, and resolves references to actors of its client.
    @inline(__always)
    private func asCaller<Result>(_ body: () throws -> Result) rethrows -> Result {
        let hosting = clientActorHost
        if callerConnection == nil, hosting == nil { return try body() }
        return try asCaller(hosting, body)
    }

    @inline(never)
    private func asCaller<Result>(_ hosting: ClientActorHostConnection?, _ body: () throws -> Result) rethrows
        -> Result
    {
        try Self.withCaller(authorization.caller, hosting, body)
    }

    /// Runs `body` as the caller of a call that has waited or comes from another reactor.
    ///
    /// - Parameter caller: The caller when the call arrived.
    static func withCaller<Result>(
        _ caller: Caller?, _ hosting: ClientActorHostConnection?, _ body: () throws -> Result
    ) rethrows -> Result {
        if caller == nil, hosting == nil { return try body() }
        guard let hosting else { return try Caller.$current.withValue(caller, operation: body) }
        return try ClientActorHost.$current.withValue(hosting.client) {
            try Caller.$current.withValue(caller, operation: body)
        }
    }

    /// The hot path: decodes, calls, encodes and responds on this thread.
    private func callInPlace(_ record: ActorRecord, _ method: ActorMethod, _ message: borrowing Message) {
        let callID = message.callID
        record.actorInstance.didRunInPlace()
        do {
            try asCaller { try shard.callInPlace(record, method, message) }
        } catch {
            shard.didCall(method.row)
            return fail(callID, shard.hidesErrors(of: method, record.type) ? RedactedError.hiding(error) : error)
        }
        let result = shard.reply.pointee.bytes
        succeed(callID, result.isEmpty ? nil : result)
        shard.didCall(method.row)
    }

    /// Calls in place while event handlers are registered.
    @inline(never)
    private func callObserved(_ record: ActorRecord, _ method: ActorMethod, _ message: borrowing Message) {
        let startsTrace = shard.observer.startsTrace(message)
        // If only trace handlers are registered, most calls create no object.
        guard
            startsTrace || shard.events.isEnabled(for: .callsOrVersions)
                || !message.envelope.pointee.traceparent.isAbsent
        else { return callInPlace(record, method, message) }
        record.actorInstance.didRunInPlace()
        let callID = message.callID
        let observed = shard.observer.beginCall(method, of: record.type, message, startsTrace: startsTrace, by: peer)
        do {
            try observed.during { try asCaller { try shard.callInPlace(record, method, message) } }
        } catch {
            shard.didCall(method.row)
            observed?.reportEnd(to: shard.events, .init(of: error))
            return fail(
                callID, shard.hidesErrors(of: method, record.type) ? RedactedError.hiding(error) : error, observed)
        }
        let result = shard.reply.pointee.bytes
        let code = code(callID, result)
        succeed(callID, result.isEmpty ? nil : result, observed)
        shard.didCall(method.row)
        observed?.reportEnd(to: shard.events, code)
    }

    /// Calls an actor in place whose changes are written before the response is sent. A call that only waits for that write occupies
    /// nothing but its place among the responses.
    ///
    /// - Returns: false when the actor has been deactivated; nothing has been done then.
    private func callPersisted(
        _ record: ActorRecord, _ persisted: PersistedStates, _ method: ActorMethod, _ message: borrowing Message
    ) -> Bool {
        let instance = record.actorInstance
        guard instance.enter() else { return false }
        defer { instance.removeUser() }
        var weight = message.bytes.count + CallLoad.overhead
        if let refusal = refusal(ofBytes: weight) {
            fail(message, refusal)
            return true
        }
        calls.count(bytes: weight)
        shard.counts.count(.callsBegun)
        let observed = shard.observer.beginCall(method, of: record.type, message, by: peer)
        let began = shard.beginsNow()
        let limit = timeLimit(of: message)
        let deadline = removeContinuedCall()?.deadline ?? shard.reactor.now &+ limit.nanoseconds
        let outcome: Result<UnsafeRawBufferPointer, any Error>
        do {
            try observed.during { try asCaller { try shard.callInPlace(record, method, message) } }
            outcome = .success(shard.reply.pointee.bytes)
            weight += countResult(shard.reply.pointee.count)
        } catch {
            outcome = .failure(shard.hidesErrors(of: method, record.type) ? RedactedError.hiding(error) : error)
        }
        let call = ResponseAwaitingCommit(
            self, weight: weight, deadline: deadline, limit: limit, row: method.row, began: began,
            observedCall: observed)
        shard.reactor.workBegan = MonotonicClock.now
        persisted.whenWritten(call, message.callID, outcome)
        return true
    }

    /// Counts a result that may have to wait, if it is larger than the fixed overhead of a call. Its bytes reduce the space for
    /// later calls.
    private func countResult(_ bytes: Int) -> Int {
        guard bytes > CallLoad.overhead else { return 0 }
        calls.countResult(bytes: bytes)
        return bytes
    }

    // MARK: With time

    /// Calls a method that may take time: its actor must be activated or is on another reactor, the method suspends, or its changes
    /// must be written.
    ///
    /// - Parameter isInTransit: True if the call runs in place on another reactor.
    private func startCall(
        _ method: ActorMethod, of record: ActorRecord?, _ message: borrowing Message, isInTransit: Bool
    ) {
        guard let call = registerCall(message, isInTransit: isInTransit, isPermitted: true) else { return }
        shard.observer.beginCall(call, method, of: record?.type, message, by: peer)
        let connection = self
        CallStart(method: method, call: call, connection: self) { connection.finish(call, $0, from: call.home) }
            .start(at: record, message)
    }

    /// Sends a call to another reactor in a batch. Returns false after shutdown; nothing has been done then.
    private func cross(_ method: ActorMethod, of record: ActorRecord, _ message: borrowing Message) -> Bool {
        guard let home = record.home, let there = shard.sibling(on: home) else { return false }
        // A call that waited in a queue keeps its deadline.
        let now = shard.reactor.now
        let limit =
            removeContinuedCall().map { $0.deadline > now ? $0.deadline - now : 0 }
            ?? timeLimit(of: message).nanoseconds
        requireCrossReactorCalls().send(method, of: record, to: there, message, within: limit)
        return true
    }
}

extension ServerConnection: CallResponder {
    package func answer(
        _ callID: UnsafeRawBufferPointer, _ outcome: Result<UnsafeRawBufferPointer, any Error>,
        of call: ResponseAwaitingCommit
    ) {
        calls.release(bytes: call.weight)
        shard.counts.count(.callsEnded)
        shard.counts.count(row: call.row, duration: MonotonicClock.now &- call.began)
        switch outcome {
        case .success(let result):
            call.observedCall?.reportEnd(to: shard.events, code(callID, result))
            if isOpen { succeed(callID, result.isEmpty ? nil : result, call.observedCall) }
        case .failure(let error):
            call.observedCall?.reportEnd(to: shard.events, .init(of: error))
            fail(callID, error, call.observedCall)
        }
    }
}

/// Calls of methods that may suspend, until they do.
extension ServerConnection: CallQueueOwner {
    /// Queues a call behind earlier calls that may suspend. Until it runs, it occupies only an element of the call queue.
    ///
    /// - Returns: false when the actor has been deactivated; nothing has been done then.
    private func enqueue(_ method: ActorMethod, _ record: ActorRecord, _ message: borrowing Message) -> Bool {
        guard record.actorInstance.enter() else { return false }
        let callID = Array(message.callID)
        let bytes = message.bytes.count + CallLoad.overhead
        if let refusal = refusal(ofBytes: bytes) {
            record.actorInstance.removeUser()
            fail(message, refusal)
            return true
        }
        calls.count(bytes: bytes)
        shard.counts.count(.callsBegun)
        let limit = timeLimit(of: message)
        let caller = authorization.caller
        Self.withCaller(caller, nil) {
            do {
                let operation = try shard.states.operation(record, method, message)
                shard.calls.enqueue(
                    QueuedCall(
                        operation, of: record, method, callID: callID, bytes: bytes, within: limit,
                        by: MonotonicClock.now &+ limit.nanoseconds, from: caller, for: self))
                calls.didQueue()
                shard.reactor.didQueueCall()
            } catch {
                record.actorInstance.removeUser()
                releaseBytes(bytes)
                fail(message, shard.hidesErrors(of: method, record.type) ? RedactedError.hiding(error) : error)
            }
        }
        return true
    }

    private func releaseBytes(_ bytes: Int) {
        calls.release(bytes: bytes)
        shard.counts.count(.callsEnded)
    }

    package func didRun(_ call: borrowing QueuedCall, _ outcome: CallOutcome) {
        didDequeue(hasRun: true)
        respond(to: call, outcome)
    }

    package func didWaitForCommit(_ call: borrowing QueuedCall) { didDequeue(hasRun: true) }

    private func didDequeue(hasRun: Bool) {
        calls.didDequeue()
        shard.reactor.didDequeueCall(hasRun: hasRun)
    }

    package func respond(to call: borrowing QueuedCall, _ outcome: CallOutcome) {
        call.record.actorInstance.removeUser()
        releaseBytes(call.bytes)
        shard.didCall(call.method.row)
        guard isOpen else { return }
        do {
            let result = try shard.encodeResult(outcome)
            call.callID.withUnsafeBytes { succeed($0, result) }
        } catch {
            fail(
                call.callID, shard.hidesErrors(of: call.method, call.record.type) ? RedactedError.hiding(error) : error)
        }
    }

    /// Records the queued calls of this connection in `running`.
    func recordQueuedCalls() { if calls.queued > 0 { shard.calls.flush() } }

    package func detach(_ queued: borrowing QueuedCall) -> (call: any CancellableCall, completion: CallCompletion) {
        didDequeue(hasRun: false)
        let instance = queued.record.actorInstance
        let call = InFlightCall(queued, at: shard.states)
        if isOpen {
            time(call, within: queued.limit)
            // Another call may have taken its callID since it started: it counts, but cannot be found.
            calls.list(call)
        } else {
            abandon(call)
        }
        let hidesErrors = shard.hidesErrors(of: queued.method, queued.record.type)
        let home = shard.states
        return (
            call,
            { outcome in
                instance.removeUser()
                self.finish(call, hidesErrors ? outcome.mapError { RedactedError.hiding($0) } : outcome, from: home)
            }
        )
    }
}

/// Running calls: from their registration to their response, their deadline or the end of the connection.
extension ServerConnection {
    /// Registers a call that is not answered at once; returns nil when it was refused.
    ///
    /// - Parameters:
    ///   - isInTransit: True if the call runs in place on another reactor.
    ///   - isPermitted: True if the rules, where there are any, have just permitted it.
    func registerCall(
        _ message: borrowing Message, isInTransit: Bool = false, isPermitted: Bool
    ) -> InFlightCall? {
        registerCall(message, Array(message.callID), isInTransit: isInTransit, isPermitted: isPermitted)
    }

    /// - Parameter callID: The identifier for cancellation.
    package func registerCall(
        _ message: borrowing Message, _ callID: [UInt8], isInTransit: Bool = false, isPermitted: Bool
    ) -> InFlightCall? {
        // Taken before user code may run here.
        let earlier = removeContinuedCall()
        let permission = (isPermitted ? authorization.consumePermission() : nil) ?? earlier?.permission
        recordQueuedCalls()
        guard calls[callID] == nil else {
            let text = "callID '\(String(decoding: callID, as: UTF8.self))' is in use by an in-flight call"
            shard.observer.didReject(message, TrebuchetError(.init(.malformedEnvelope), text), by: peer)
            sendError(.malformedEnvelope, text)
            return nil
        }
        let bytes = message.bytes.count + (isInTransit ? 0 : CallLoad.overhead)
        // A call that continues was admitted before.
        if !isInTransit, isCounted || earlier != nil {
            _ = account.adjustUsage(by: bytes)
        } else if !isInTransit, let refusal = refusal(ofBytes: bytes) {
            fail(message, refusal)
            return nil
        }
        let limit = timeLimit(of: message)
        let call = InFlightCall(
            callID: callID, after: limit, on: shard.reactor, byteCount: bytes, isInTransit: isInTransit,
            continuing: earlier)
        call.permission = permission
        call.caller = authorization.caller
        call.inherit(earlier, message)
        time(call, within: limit)
        calls.list(call)
        if calls.count(call) { link.pauseReading() }
        shard.counts.count(.callsBegun)
        return call
    }

    /// Registers a stream that waits for its actor again; nil if the limit is reached, or the key is in use.
    func registerCall(waitingAgain key: [UInt8]) -> InFlightCall? {
        guard running[key] == nil, load.count < limits.calls else { return nil }
        let call = InFlightCall(callID: key, after: shard.limits.calls.timeout, on: shard.reactor, byteCount: 0)
        calls.list(call)
        _ = calls.count(call)
        shard.counts.count(.callsBegun)
        return call
    }

    /// Registers interceptors that have received the refusal of a withdrawn call, with its deadline.
    func registerCall(_ intercepted: InterceptedCall, of refused: InFlightCall) {
        let limit = Duration.nanoseconds(Int64(clamping: refused.machineDeadline &- refused.began))
        let call = InFlightCall(
            callID: refused.callID, after: limit, on: shard.reactor, byteCount: refused.byteCount, continuing: refused)
        call.caller = refused.caller
        call.inherit(intercepted, of: refused)
        _ = call.beginInterception()
        _ = account.adjustUsage(by: call.byteCount)
        time(call, within: limit)
        calls.list(call)
        if calls.count(call) { link.pauseReading() }
        shard.counts.count(.callsBegun)
    }

    /// Ends a call at its deadline.
    func time(_ call: InFlightCall, within limit: Duration) {
        // The timer retains both until it is cancelled at the end of the call: a weak reference would make every later reference
        // count operation on them slower.
        call.timer = shard.reactor.schedule(at: call.deadline) {
            call.cancel()
            self.finish(call, .failure(TrebuchetError(.timeout, "the call took longer than \(limit)")))
        }
    }

    /// Returns the maximum duration of a call.
    func timeLimit(of message: borrowing Message) -> Duration {
        let limits = shard.limits
        guard let requested = message.envelope.pointee.timeoutMilliseconds else {
            return min(limits.calls.timeout, limits.calls.maximumTimeout)
        }
        return min(.milliseconds(requested), limits.calls.maximumTimeout)
    }

    /// Describes the calls in flight, for tests.
    func describeCalls() -> String {
        let calls = calls.all.prefix(5).map { call in
            let name = call.streamedActor?.text ?? call.activatedActor?.text ?? "row \(call.row ?? -1)"
            return "\(name) in phase \(call.phase) for \((MonotonicClock.now &- call.began) / 1_000_000) ms"
        }
        return
            "connection \(peer.connection): \(load.count) calls, \(load.inTransit) in transit, \(load.answered) answered, "
            + "\(self.calls.queued) queued, writable: \(isWritable), paused: \(load.isPaused), "
            + "\(link.pendingBytes) bytes pending; \(calls)"
    }

    /// Indicates whether no running call remains to be answered.
    var hasNoCalls: Bool { callsUnderWay == 0 && deferredResponses == nil }
    var callsUnderWay: Int { load.count + load.inTransit }
    var load: CallLoad { calls.load }
    /// The listed calls by callID.
    var running: [[UInt8]: InFlightCall] { calls.listed }

    /// Returns the reason to refuse a further call; nil when its bytes have been reserved.
    func refusal(ofBytes bytes: Int) -> TrebuchetError? {
        let account = account
        guard let refusal = calls.refusal(ofBytes: bytes, limits, account) else { return nil }
        countRejection(limit: refusal.setting)
        return refusal.error
    }

    /// The memory account of its calls.
    var account: MemoryAccount {
        if let memory = calls.memory { return memory }
        let created = link.memory ?? MemoryAccount(limit: .max, server: shard.context.memory)
        calls.memory = created
        return created
    }

    /// Ends a call whose connection is closed, and which is not listed any more.
    func abandon(_ call: InFlightCall) {
        if let last = call.end(isAnswered: false) { release(call, after: last) }
    }

    /// Ends the accounting of a call without a waiting caller: releases what `registerCall` reserved. Work that still runs for the call, or
    /// is on its way to another server, keeps its memory and counts until it ends. Otherwise a client could start any number of
    /// methods without waiting.
    ///
    /// - Parameter last: The phase in which the call has ended.
    private func release(_ call: InFlightCall, after last: InFlightCall.Phase) {
        switch last {
        case .forwarded(let request):
            if request.whenSent({ [shard] in shard.reactor.execute { self.didWork(call) } }) { call.continueWork() }
        case .awaitingStreams(let barrier): release(barrier)
        default: break
        }
        shard.counts.count(.callsEnded)
        if calls.release(call) { link.resumeReading() }
    }

    /// Ends the wait of a response for streams.
    func release(_ barrier: ResponseBarrier) {
        barrier.drop()
        calls.memory?.release(barrier.bytes)
    }

    /// Notes that the work for a call has ended.
    func didWork(_ call: InFlightCall) {
        if call.endWork(), calls.releaseWork(of: call) { link.resumeReading() }
    }

    /// Reverts `registerCall`.
    package func withdraw(_ call: InFlightCall) {
        guard let last = call.end(), calls.remove(call) else { return }
        // Event handlers are notified again when the call starts elsewhere.
        call.observedCall?.reportEnd(to: shard.events, .unavailable)
        release(call, after: last)
    }

    // MARK: Calls that are handled again

    /// Withdraws a call and handles its message again: the call was sent to another server or waited for it.
    package func continueAgain(_ call: InFlightCall, _ message: OwnedMessage) {
        continueAgain(call) { message.withMessage { handleReturned($0) } }
    }

    /// Withdraws a call, and handles its message again in `body`, with its deadline and the decision of the access rules. Otherwise a
    /// call that returns repeatedly would never end.
    ///
    /// A call whose principal has left the connection meanwhile fails instead.
    package func continueAgain(_ call: InFlightCall, _ body: () -> Void) {
        withdraw(call)
        // The interceptors that receive a refusal of the withdrawn call decide its response.
        defer { call.intercepted?.holdIfRefused(call) }
        if let refusal = authorization.refusalOfReplacedPrincipal(call) {
            let error = call.mayHaveRun ? refusal.ofSentCall : refusal
            if call.intercepted?.refuse(error) == true { return }
            return fail(call.callID, error)
        }
        let before = shard.continued
        shard.continued = (call, self)
        defer { shard.continued = before }
        body()
    }

    /// The withdrawn call of the message in hand, if the message is handled again.
    var continuedCall: InFlightCall? {
        guard let continued = shard.continued, continued.connection === self else { return nil }
        return continued.call
    }

    /// Returns the call that the current message belonged to before, once.
    func removeContinuedCall() -> InFlightCall? {
        guard let call = continuedCall else { return nil }
        shard.continued = nil
        return call
    }

    /// Handles a message that was on its way to another server and belongs to this one. It has been counted.
    package func handleReturned(_ message: borrowing Message) {
        withoutCounting { handleAgain(message) }
    }

    /// Handles a resumption that was on its way to another server, so interceptors have not run.
    package func handleReturnedResumption(_ message: borrowing Message) {
        isReturnedResumption = true
        defer { isReturnedResumption = false }
        handleReturned(message)
    }

    /// Handles a call again that may have started.
    func repeatCall(_ message: borrowing Message) {
        guard message.kind == .invocation else { return handleReturned(message) }
        message.withRepeat { handleReturned($0) }
    }

    /// Handles a message that has waited.
    package func handleAgain(_ message: borrowing Message) {
        switch message.kind {
        case .invocation: invoke(message)
        case .repeat: idempotentCalls.receiveRepeat(message)
        case .cancel: cancel(message)
        default: resume(message)
        }
    }

    /// Handles messages in `body` that the client did not send, or that were counted before.
    func withoutCounting(_ body: () -> Void) {
        let before = isCounted
        isCounted = true
        defer { isCounted = before }
        body()
    }

    // MARK: Responses

    /// Answers a call, on whatever thread it ended.
    ///
    /// - Parameter home: The shard on whose reactor it ran, in place or in a task; nil if it ran on no reactor.
    func finish(_ call: InFlightCall, _ outcome: CallOutcome, from home: SystemShard?) {
        // The changes of an actor without a reactor are on their way here, even if it ran on this thread.
        if home != nil, shard.reactor.isCurrent {
            didWork(call)
            return call.activatedActor == nil ? finish(call, outcome) : finish(call, outcome, behindStreamsOf: home)
        }
        guard let queue = call.crossReactorQueue, case .success(let result) = outcome else {
            return shard.deliver(from: home) {
                self.didWork(call)
                self.finish(call, outcome, behindStreamsOf: home)
            }
        }
        queue.addUnreadBytes(result.byteCount)
        shard.deliver(from: home) {
            self.didWork(call)
            self.finish(call, outcome, behindStreamsOf: home)
            self.crossReactorCalls?.didReceive(result.byteCount, from: queue)
        }
    }

    package func finish(_ call: InFlightCall, _ outcome: CallOutcome) {
        var outcome = outcome
        if let intercepted = call.intercepted, !call.isAnswered {
            guard let final = intercepted.receive(outcome) else { return }
            outcome = final
        }
        guard let last = call.end() else { return }
        if calls.remove(call) { release(call, after: last) }
        guard isOpen else { return shard.observer.didEnd(call, outcome.errorCode) }
        do {
            let result = try shard.encodeResult(outcome)
            call.callID.withUnsafeBytes {
                shard.observer.didEnd(call, code($0, result))
                succeed($0, result, call.observedCall)
            }
        } catch {
            shard.observer.didEnd(call, .init(of: error))
            guard let stream = call.stream else {
                return call.callID.withUnsafeBytes { fail($0, error, call.observedCall) }
            }
            refuse(stream, call.callID, error)
        }
    }

    /// Handles the cancellation of a call by its client.
    func cancel(_ message: borrowing Message) {
        recordQueuedCalls()
        guard let call = calls[Array(message.callID)] else {
            if crossReactorCalls?.end(message.callID, .cancelledByCaller) == true { return }
            _ = forwarder?.postpones(message)
            return
        }
        call.cancel()
        finish(call, .failure(TrebuchetError.cancelledByCaller))
    }

}

extension CallOutcome {
    /// The number of encoded bytes of the call's result.
    var bytesOfResult: Int { (try? get())?.byteCount ?? 0 }

    /// The code that event handlers receive; nil for a result.
    fileprivate var errorCode: TrebuchetError.Code? {
        if case .failure(let error) = self { TrebuchetError.Code(of: error) } else { nil }
    }
}

extension TrebuchetError {
    fileprivate static var cancelledByCaller: TrebuchetError {
        TrebuchetError(.cancelled, "the call was cancelled by its caller")
    }
}

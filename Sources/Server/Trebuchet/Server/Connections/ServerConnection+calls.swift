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

    func notExposed(_ message: borrowing Message) -> TrebuchetError {
        TrebuchetError(.actorNotFound, "no actor '\(message.actorName.prefix(bytes: ActorName.longest))' is exposed")
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
        switch CallRouter.inPlacePath(of: inPlaceTraits(method, record)) {
        case .inPlace?: callInPlace(record, method, message)
        case .observed?: callObserved(record, method, message)
        default: route(message, to: .ready(record), method)
        }
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
        let traits = traits(of: method, at: location, message)
        let path = CallRouter.path(of: traits) { mayBeDuplicate(message, in: traits.place) }
        switch path {
        case .forwarded:
            if case .elsewhere(let type) = location { return forward(type, message) }
        case .rejected(let rejection): return reject(message, rejection, method, location.type)
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

    /// Returns the traits that decide whether a call runs in place.
    @inline(__always)
    private func inPlaceTraits(_ method: ActorMethod, _ record: ActorRecord) -> CallTraits {
        var traits = CallTraits()
        traits.isSynchronous = method.runsInPlace
        traits.place = place(of: record)
        traits.isPersisted = record.persisted != nil
        traits.hasStartingCalls = record.actorInstance.isStarting
        traits.isObserved = Unmanaged.passUnretained(shard.events)._withUnsafeGuaranteedRef {
            $0.isEnabled(for: .callsVersionsOrSpans)
        }
        return traits
    }

    /// - Parameter method: nil if the actor or the method is unknown.
    private func traits(
        of method: ActorMethod?, at location: ActorLocation, _ message: borrowing Message
    ) -> CallTraits {
        var traits = CallTraits()
        if let method, let record = location.record {
            traits = inPlaceTraits(method, record)
            traits.needsSeparateTask = record.actorInstance.separateTaskCalls.load(ordering: .relaxed) > 0
        }
        switch location {
        case .ready(let record): traits.place = place(of: record)
        case .inactive: traits.place = .inactive
        case .elsewhere: traits.place = .otherServer
        case .unknown: traits.place = .unknown
        }
        traits.hasMethod = method != nil
        if let method {
            traits.isIdempotent = method.isIdempotent
            traits.hasArgumentCount = message.envelope.pointee.arguments.count == method.arguments
            traits.hasGenericCount = message.envelope.pointee.genericSubstitutions.count == method.generics
        }
        traits.hasSession = !message.envelope.pointee.session.isAbsent
        traits.hasMetadata = message.hasMetadata
        traits.isIntercepted = isContinuingIntercepted
        traits.isOpen = isOpen
        traits.isOfOtherServer = upstream != nil
        traits.isCounted = isCounted
        traits.hostsActors = clientActorHost != nil
        return traits
    }

    @inline(__always)
    private func place(of record: ActorRecord) -> CallTraits.Place {
        guard let home = record.home else { return .noReactor }
        return home === shard.states ? .thisReactor : .otherReactor
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

    @inline(__always)
    func hasCounts(_ method: ActorMethod, _ message: borrowing Message) -> Bool {
        message.envelope.pointee.arguments.count == method.arguments
            && message.envelope.pointee.genericSubstitutions.count == method.generics
    }

    // MARK: In place

    /// Runs `body` with `Caller.current` set to this connection's caller, and resolves references to actors of its client.
    ///
    /// - Parameter hosting: The connection's property, read on its reactor.
    @inline(__always)
    func asCaller<Result>(_ hosting: ClientActorHostConnection?, _ body: () throws -> Result) rethrows -> Result {
        if callerConnection == nil, hosting == nil { return try body() }
        return try withCaller(hosting, body)
    }

    @inline(never)
    private func withCaller<Result>(_ hosting: ClientActorHostConnection?, _ body: () throws -> Result) rethrows
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
            try asCaller(clientActorHost) { try shard.callInPlace(record, method, message) }
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
            try observed.during {
                try asCaller(clientActorHost) { try shard.callInPlace(record, method, message) }
            }
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
            try observed.during {
                try asCaller(clientActorHost) { try shard.callInPlace(record, method, message) }
            }
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
        start(method, of: record, message, call) { connection.finish(call, $0, from: call.home) }
    }

    /// Activates the actor if necessary, and calls the method.
    ///
    /// - Parameter completion: Called on the thread where the call ends.
    func start(
        _ method: ActorMethod, of record: ActorRecord?, _ message: borrowing Message, _ call: InFlightCall,
        _ completion: @escaping CallCompletion
    ) {
        if let record { return run(method, of: record, message, call, completion) }
        let owned = OwnedMessage(message)
        wait(for: message.actorName, method, owned, call, completion)
    }

    func wait(
        for name: String, _ method: ActorMethod, _ owned: OwnedMessage, _ call: InFlightCall,
        _ completion: @escaping CallCompletion
    ) {
        // A strong reference: a call whose response is recorded outlives the link of its connection.
        let waiter = shard.awaitActor(ActorName(name), for: scopes, byteCount: owned.byteCount) { outcome in
            guard call.endActivationWait() else { return }
            switch outcome {
            case .failure(let error):
                if ActorMoved.isIt(error), self.calls[call.callID] === call {
                    self.withdraw(call)
                    return self.continuing(call) { owned.withMessage { self.handleReturned($0) } }
                }
                self.refuseToStart(call, owned, error, completion)
            case .success(let record):
                guard let method = method.resolved(in: record.type) else {
                    let error = TrebuchetError(.methodNotFound, "the actor has been replaced")
                    return self.refuseToStart(call, owned, error, completion)
                }
                if let refusal = self.authorization.refusalAfterWait(of: method.name, record.name, call) {
                    return self.refuseToStart(call, owned, refusal, completion)
                }
                if record.isClustered { call.activatedActor = ActorName(record.name) }
                owned.withMessage { self.run(method, of: record, $0, call, completion) }
            }
        }
        call.awaitActivation(waiter)
    }

    /// Ends a call that has waited and does not start. The record of an execution is withdrawn, so that a repeat may start.
    private func refuseToStart(
        _ call: InFlightCall, _ owned: OwnedMessage, _ error: any Error, _ completion: CallCompletion
    ) {
        let refusal = owned.withMessage { self.refusal(error, of: $0) }
        // A call whose actor has moved waits for its next owner.
        guard call.execution != nil, !ActorMoved.isIt(refusal) else { return completion(.failure(refusal)) }
        shard.withdrawExecution(call, refusal)
    }

    private func run(
        _ method: ActorMethod, of record: ActorRecord, _ message: borrowing Message, _ call: InFlightCall,
        _ completion: @escaping CallCompletion
    ) {
        if let recorded = call.execution?.record, record.persisted?.earlier.contains(recorded) == true {
            return completion(.failure(PriorExecution()))
        }
        call.home = record.home
        guard let home = record.home, home !== shard.states else {
            call.beginWork()
            return Self.withCaller(call.caller, clientActorHost) {
                if !shard.run(method, of: record, message, call, completion) {
                    _ = call.endWork()
                    wait(for: record.name, method, OwnedMessage(message), call, completion)
                }
            }
        }
        guard let there = shard.sibling(on: home) else {
            return completion(.failure(TrebuchetError(.unavailable, "the server has shut down")))
        }
        // Only the bytes cross; the other reactor scans them again, which costs less than a transfer of the scan result.
        let bytes = Array(message.bytes)
        let connection = self
        let hosting = clientActorHost
        let queue = crossReactorQueues.queue(to: there.reactor)
        if call.isInTransit { call.crossReactorQueue = queue }
        call.beginWork()
        queue.enqueue(bytes: bytes.count) {
            // The call may have been queued for long. A method that suspends checks for cancellation itself.
            if method.runsInPlace, call.isCancelled { return completion(.failure(CancellationError())) }
            let isThere = Self.withCaller(call.caller, hosting) {
                there.withMessage(bytes) { there.run(method, of: record, $0, call, completion) }
            }
            guard isThere != true else { return }
            // The actor has been deactivated meanwhile. This reactor receives that notice before the closure below.
            connection.shard.reactor.execute {
                connection.didWork(call)
                guard !call.isAnswered else { return }
                guard let owned = connection.shard.withMessage(bytes, { OwnedMessage($0) }) else {
                    return completion(.failure(TrebuchetError(.internal, "too many messages at once")))
                }
                connection.wait(for: record.name, method, owned, call, completion)
            }
        }
    }

    // MARK: Refusals

    private func reject(
        _ message: borrowing Message, _ rejection: CallRejection, _ method: ActorMethod?, _ type: ActorType?
    ) {
        switch rejection {
        case .actorNotFound: fail(message, notExposed(message))
        case .methodNotFound: if let type { failUnknownMethod(of: type, message) }
        case .argumentCount, .genericCount: if let method { fail(message, wrongCounts(method, message)) }
        }
    }

    private func failUnknownMethod(of type: ActorType, _ message: borrowing Message) {
        var text =
            "actor '\(message.actorName.prefix(bytes: ActorName.longest))' has no method "
            + "'\(message.target.prefix(bytes: 128))'"
        if !type.names.isEmpty { text += "; it has " + type.names.joined(separator: ", ") }
        fail(message, TrebuchetError(.methodNotFound, text))
    }

    func wrongCounts(_ method: ActorMethod, _ message: borrowing Message) -> TrebuchetError {
        let envelope = message.envelope
        let text =
            envelope.pointee.arguments.count != method.arguments
            ? "\(method.name) takes \(method.arguments.counted("argument")), got \(envelope.pointee.arguments.count)"
            : "\(method.name) takes \(method.generics.counted("generic substitution")), got "
                + "\(envelope.pointee.genericSubstitutions.count)"
        return TrebuchetError(.invalidArguments, text)
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
        if let observed = call.observedCall {
            switch outcome {
            case .success(let result): observed.reportEnd(to: shard.events, code(callID, result))
            case .failure(let error): observed.reportEnd(to: shard.events, .init(of: error))
            }
        }
        guard isOpen else { return }
        switch outcome {
        case .success(let result): succeed(callID, result.isEmpty ? nil : result, call.observedCall)
        case .failure(let error): fail(callID, error, call.observedCall)
        }
    }
}

extension ActorMethod {
    /// Returns the same method of the activated actor, whose type may differ by then.
    func resolved(in type: ActorType) -> ActorMethod? {
        guard case .method(let found) = type.target(name) else { return nil }
        let method = found.takeUnretainedValue()
        return method.arguments == arguments && method.generics == generics ? method : nil
    }
}

/// Calls of methods that may suspend, until they do.
extension ServerConnection: CallQueueOwner {
    /// Queues a call behind earlier calls that may suspend. Until it runs, it occupies only an element of the call queue.
    ///
    /// - Returns: false when the actor has been deactivated; nothing has been done then.
    func enqueue(_ method: ActorMethod, _ record: ActorRecord, _ message: borrowing Message) -> Bool {
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
        calls.didDequeue()
        respond(to: call, outcome)
    }

    package func didWaitForCommit(_ call: borrowing QueuedCall) { calls.didDequeue() }

    package func respond(to call: borrowing QueuedCall, _ outcome: CallOutcome) {
        call.record.actorInstance.removeUser()
        releaseBytes(call.bytes)
        shard.didCall(call.method.row)
        guard isOpen else { return }
        do {
            let result = try outcome.get()
            shard.reply.pointee.reset(keepingAtMost: ServerShard.retainedReplyCapacity)
            try result.write(with: shard.coder, into: &shard.reply.pointee)
            let bytes = shard.reply.pointee.bytes
            call.callID.withUnsafeBytes { succeed($0, result.isVoid ? nil : bytes) }
        } catch {
            fail(
                call.callID, shard.hidesErrors(of: call.method, call.record.type) ? RedactedError.hiding(error) : error)
        }
    }

    /// Records the queued calls of this connection in `running`.
    func recordQueuedCalls() { if calls.queued > 0 { shard.calls.flush() } }

    package func detach(_ queued: borrowing QueuedCall) -> (call: any CancellableCall, completion: CallCompletion) {
        calls.didDequeue()
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

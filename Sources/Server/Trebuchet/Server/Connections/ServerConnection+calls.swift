internal import Bytes
internal import Networking
internal import Platform
internal import Synchronization
package import TrebuchetActors
internal import TrebuchetWire

/// Executes calls. Each scanned call takes the same steps: find the actor and the target, check authorization and rates, check the
/// number of arguments, activate the actor if necessary, and call the method. User code never runs for an unauthorized caller.
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
        switch location(of: message) {
        case .ready(let record): invoke(record, message)
        case .inactive(let type): invoke(type, nil, message)
        case .elsewhere(let type): forward(type, message)
        case .unknown:
            guard mayPass(message.target, message) else { return }
            fail(message, notExposed(message))
        }
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
        invoke(record.type, record, message)
    }

    /// - Parameter record: nil while the actor is not activated.
    private func invoke(_ type: ActorType, _ record: ActorRecord?, _ message: borrowing Message) {
        let target = type.target(message.target)
        if case .method(let method) = target {
            return method._withUnsafeGuaranteedRef { callCarefully($0, of: record, message) }
        }
        if case .stream(let stream) = target, isIntercepted(message, stream, nil, of: type) { return }
        guard mayPass(target.name, of: record, message) else { return }
        switch target {
        case .method: break
        case .stream(let stream): startStream(stream, of: record, message)
        case .unknown(let name): failUnknownMethod(name, of: type, message)
        }
    }

    /// The hot path, which most calls take: methods that run in place and need no authorization. It performs no further checks.
    @inline(__always)
    private func call(_ method: ActorMethod, of record: ActorRecord, _ message: borrowing Message) {
        guard !isGuarded, !method.isChecked.load(ordering: .relaxed), hasCounts(method, message),
            message.envelope.pointee.metadata.isAbsent, runsInPlace(method, record)
        else {
            return callCarefully(method, of: record, message)
        }
        callInPlace(record, method, message)
    }

    @inline(__always)
    private func runsInPlace(_ method: ActorMethod, _ record: ActorRecord) -> Bool {
        record.persisted == nil && mayRunInPlace(method, record)
    }

    @inline(__always)
    private func mayRunInPlace(_ method: ActorMethod, _ record: ActorRecord) -> Bool {
        method.runsInPlace && record.home === shard.states && !record.actorInstance.isStarting
    }

    /// - Parameter record: nil while the actor is not activated.
    @inline(never)
    private func callCarefully(_ method: ActorMethod, of record: ActorRecord?, _ message: borrowing Message) {
        if isGuarded(method.name) {
            if isQueuedBehindOthers(message) || isIntercepted(message, method, of: record) { return }
            guard mayPass(method.name, of: record, message) else { return }
        }
        guard hasCounts(method, message) else { return failCounts(method, message) }
        if method.isIdempotent, !message.envelope.pointee.session.isAbsent {
            return callOnce(method, of: record, message)
        }
        // The other paths have no room for metadata and interceptors.
        if message.hasMetadata || isContinuingIntercepted { return call(method, of: record, message) }
        if let record, mayRunInPlace(method, record) {
            guard let persisted = record.persisted else {
                shard.continued = nil
                return callInPlace(record, method, message)
            }
            if callInPlace(record, persisted, method, message) { return }
        }
        if let record, isQueued(method, record, message) { return }
        if let record, cross(method, of: record, message) { return }
        call(method, of: record, message)
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
        try Self.withCaller(caller, hosting, body)
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
        if Unmanaged.passUnretained(shard.events)._withUnsafeGuaranteedRef({ $0.isEnabled(for: .callsVersionsOrSpans) })
        {
            let startsTrace = beginsTrace(message)
            // If only trace handlers are registered, most calls create no object.
            if startsTrace || shard.events.isEnabled(for: .callsOrVersions)
                || !message.envelope.pointee.traceparent.isAbsent
            {
                return callObserved(record, method, message, startsTrace: startsTrace)
            }
        }
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
    private func callObserved(
        _ record: ActorRecord, _ method: ActorMethod, _ message: borrowing Message, startsTrace: Bool
    ) {
        let callID = message.callID
        let observed = makeObservedCall(
            method.name, isRedacted: method.isRedacted, record.type, message, startsTrace: startsTrace)
        do {
            try observed.during {
                try asCaller(clientActorHost) { try shard.callInPlace(record, method, message) }
            }
        } catch {
            shard.didCall(method.row)
            observed?.reportEnd(to: shard.events, code(of: error))
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
    private func callInPlace(
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
        load.count += 1
        load.bytes += weight
        shard.counts.count(.callsBegun)
        let observed = observedCallIfNeeded(method, record.type, message)
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
        load.bytes += bytes
        _ = memory?.adjustUsage(by: bytes)
        return bytes
    }

    // MARK: With time

    /// Calls a method that may take time: its actor must be activated or is on another reactor, the method suspends, or its changes
    /// must be written.
    private func call(_ method: ActorMethod, of record: ActorRecord?, _ message: borrowing Message) {
        let isInTransit =
            if let record, let home = record.home {
                method.runsInPlace && home !== shard.states && record.persisted == nil
            } else {
                false
            }
        guard let call = registerCall(message, isInTransit: isInTransit, isPermitted: true) else { return }
        recordCallStart(method, of: record?.type, message, in: call)
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
            call.waiter = nil
            guard !call.isAnswered else { return }
            switch outcome {
            case .failure(let error):
                if ActorMoved.isIt(error), self.running[call.callID] === call {
                    self.withdraw(call)
                    return self.continuing(call) { owned.withMessage { self.handleReturned($0) } }
                }
                completion(.failure(owned.withMessage { self.refusal(error, of: $0) }))
            case .success(let record):
                guard let method = method.resolved(in: record.type) else {
                    return completion(.failure(TrebuchetError(.methodNotFound, "the actor has been replaced")))
                }
                if let refusal = self.refusalAfterWait(of: method.name, record.name, call) {
                    return completion(.failure(owned.withMessage { self.refusal(refusal, of: $0) }))
                }
                if record.isClustered { call.activatedActor = ActorName(record.name) }
                owned.withMessage { self.run(method, of: record, $0, call, completion) }
            }
        }
        if !call.isAnswered { call.waiter = waiter }
    }

    private func run(
        _ method: ActorMethod, of record: ActorRecord, _ message: borrowing Message, _ call: InFlightCall,
        _ completion: @escaping CallCompletion
    ) {
        if let recorded = call.idempotencyRecord, record.persisted?.earlier.contains(recorded) == true {
            return completion(.failure(PriorExecution()))
        }
        call.home = record.home
        guard let home = record.home, home !== shard.states else {
            call.isAtWork = true
            return Self.withCaller(call.caller, clientActorHost) {
                if !shard.run(method, of: record, message, call, completion) {
                    call.isAtWork = false
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
        let crossing = crossing(to: there.reactor)
        if call.isInTransit { call.crossing = crossing }
        call.isAtWork = true
        crossing.enqueue(bytes: bytes.count) {
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

    func crossing(to reactor: Reactor) -> CrossReactorCallQueue {
        if let crossing = crossReactorQueues.first(where: { $0.reactor === reactor }) { return crossing }
        let crossing = CrossReactorCallQueue(on: reactor)
        crossReactorQueues.append(crossing)
        return crossing
    }

    // MARK: Refusals

    private func failUnknownMethod(_ name: String, of type: ActorType, _ message: borrowing Message) {
        var text =
            "actor '\(message.actorName.prefix(bytes: ActorName.longest))' has no method '\(name.prefix(bytes: 128))'"
        if !type.names.isEmpty { text += "; it has " + type.names.joined(separator: ", ") }
        fail(message, TrebuchetError(.methodNotFound, text))
    }

    func failCounts(_ method: ActorMethod, _ message: borrowing Message) {
        let envelope = message.envelope
        let text =
            envelope.pointee.arguments.count != method.arguments
            ? "\(method.name) takes \(method.arguments.counted("argument")), got \(envelope.pointee.arguments.count)"
            : "\(method.name) takes \(method.generics.counted("generic substitution")), got "
                + "\(envelope.pointee.genericSubstitutions.count)"
        fail(message, TrebuchetError(.invalidArguments, text))
    }
}

extension ServerConnection: CallResponder {
    package func answer(
        _ callID: UnsafeRawBufferPointer, _ outcome: Result<UnsafeRawBufferPointer, any Error>,
        of call: ResponseAwaitingCommit
    ) {
        load.count -= 1
        load.bytes -= call.weight
        memory?.release(call.weight)
        shard.counts.count(.callsEnded)
        shard.counts.count(row: call.row, duration: MonotonicClock.now &- call.began)
        if let observed = call.observedCall {
            let code = if case .success(let result) = outcome { code(callID, result) } else { code(of: outcome) }
            observed.reportEnd(to: shard.events, code)
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

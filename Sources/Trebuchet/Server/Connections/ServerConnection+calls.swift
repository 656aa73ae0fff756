internal import Bytes
internal import Networking
internal import Platform
internal import TrebuchetActors
internal import TrebuchetWire

/// The way of a call, the same for all: it was scanned; then what its name leads to, and what its target means there; whether
/// it may be made, and how fast; whether it has what the method takes; then its actor is made, when it is not there, and the
/// method runs. Nothing of an app runs for who may not call.
extension ServerConnection {
    func invoke(_ message: borrowing Message) {
        let name = message.envelope.pointee.actorID
        if !name.isEscaped, let record = shard.record(message.bytes(name)) {
            let isHere = record._withUnsafeGuaranteedRef { record in
                guard !record.isPlaced || shard.isOwned(record) else { return false }
                invoke(record, message)
                return true
            }
            if isHere { return }
        }
        guard hasName(message) else { return }
        switch place(of: message) {
        case .ready(let record): invoke(record, message)
        case .unmade(let type): invoke(type, nil, message)
        case .elsewhere(let type): forward(type, message)
        case .nowhere:
            guard mayPass(message.target, message) else { return }
            fail(message, notExposed(message))
        }
    }

    /// Whether there may be an actor of the name; false after a refusal. Nothing is kept of a longer one.
    func hasName(_ message: borrowing Message) -> Bool {
        // It has no more bytes than are written.
        guard message.bytes(message.envelope.pointee.actorID).count > ActorName.longest else { return true }
        let name = ActorName(message.actorName)
        guard name.isTooLong, shard.directory.type(of: name) == nil else { return true }
        fail(message, shard.limits.hasRates ? rateRefusal(of: message.target) ?? ActorName.tooLong : ActorName.tooLong)
        return false
    }

    func place(of message: borrowing Message) -> ActorPlace {
        shard.place(of: ActorName(message.actorName))
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

    /// - Parameter record: nil while the actor is not made.
    private func invoke(_ type: ActorType, _ record: ActorRecord?, _ message: borrowing Message) {
        let target = type.target(message.target)
        if case .method(let method) = target {
            return method._withUnsafeGuaranteedRef { callCarefully($0, of: record, message) }
        }
        if case .program = target, standsBehindOthers(message) { return }
        guard mayPass(target.name, of: record, message) else { return }
        switch target {
        case .method: break
        case .stream(let stream): begin(stream, of: record, message)
        case .program(let method): call(.program(method), of: record, message)
        case .unknown(let name): failUnknownMethod(name, of: type, message)
        }
    }

    /// The hot path: what runs in place and may be called by anybody, as most calls. It looks at no more than that takes.
    @inline(__always)
    private func call(_ method: ActorMethod, of record: ActorRecord, _ message: borrowing Message) {
        guard !isGuarded, !method.isIdempotent, hasCounts(method, message), runsInPlace(method, record) else {
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
        method.runsInPlace && record.home === shard.states && !record.life.isStarting
    }

    /// - Parameter record: nil while the actor is not made.
    @inline(never)
    private func callCarefully(_ method: ActorMethod, of record: ActorRecord?, _ message: borrowing Message) {
        if isGuarded {
            if standsBehindOthers(message) { return }
            guard mayPass(method.name, of: record, message) else { return }
        }
        guard hasCounts(method, message) else { return failCounts(method, message) }
        if method.isIdempotent, !message.envelope.pointee.session.isAbsent {
            return callOnce(method, of: record, message)
        }
        if let record, mayRunInPlace(method, record) {
            guard let persisted = record.persisted else {
                shard.continued = nil
                return callInPlace(record, method, message)
            }
            if callInPlace(record, persisted, method, message) { return }
        }
        if let record, standsInLine(method, record, message) { return }
        if let record, cross(method, of: record, message) { return }
        call(.table(method), of: record, message)
    }

    /// Whether the caller may do it, and not too fast; false after a refusal.
    ///
    /// - Parameter record: the actor's, where that is known, which has its name at hand.
    func mayPass(_ target: String, of record: ActorRecord? = nil, _ message: borrowing Message) -> Bool {
        guard isGuarded, let refusal = refusal(of: target, record?.name ?? message.actorName) else { return true }
        fail(message, refusal)
        return false
    }

    @inline(__always)
    func hasCounts(_ method: ActorMethod, _ message: borrowing Message) -> Bool {
        message.envelope.pointee.arguments.count == method.arguments
            && message.envelope.pointee.genericSubstitutions.count == method.generics
    }

    // MARK: In place

    /// Runs `body` so that `Caller.current` is this connection's, and references are to actors of its client.
    ///
    /// - Parameter hosting: the connection's own, read on its reactor.
    @inline(__always)
    func asCaller<Result>(_ hosting: HostingConnection?, _ body: () throws -> Result) rethrows -> Result {
        if caller == nil, hosting == nil { return try body() }
        return try asSomebody(hosting, body)
    }

    @inline(never)
    private func asSomebody<Result>(_ hosting: HostingConnection?, _ body: () throws -> Result) rethrows -> Result {
        guard let hosting else { return try Caller.$current.withValue(caller, operation: body) }
        return try HostingClient.$current.withValue(hosting.client) {
            try Caller.$current.withValue(caller, operation: body)
        }
    }

    /// The hot path: decode, call, encode and answer without leaving this thread.
    private func callInPlace(_ record: ActorRecord, _ method: ActorMethod, _ message: borrowing Message) {
        let callID = message.callID
        record.life.didRunInPlace()
        if Unmanaged.passUnretained(shard.events)._withUnsafeGuaranteedRef({ $0.wants(.callsVersionsOrSpans) }) {
            let begins = beginsTrace(message)
            // Where only those listen who trace, of most calls nothing is made.
            if begins || shard.events.wants(.callsOrVersions) || !message.envelope.pointee.traceparent.isAbsent {
                return callTelling(record, method, message, begins: begins)
            }
        }
        do {
            try asCaller(hosting) { try shard.callInPlace(record, method, message, dates) }
        } catch {
            shard.didCall(method.row)
            return fail(callID, method.hidesErrors(record.type) ? SecretError.hiding(error) : error)
        }
        let result = shard.reply.pointee.bytes
        succeed(callID, result.isEmpty ? nil : result)
        shard.didCall(method.row)
    }

    /// The same while somebody listens.
    @inline(never)
    private func callTelling(
        _ record: ActorRecord, _ method: ActorMethod, _ message: borrowing Message, begins: Bool
    ) {
        let callID = message.callID
        let told = told(method.name, isRedacted: method.isRedacted, record.type, message, begins: begins)
        do {
            try told.during { try asCaller(hosting) { try shard.callInPlace(record, method, message, dates) } }
        } catch {
            shard.didCall(method.row)
            told?.tell(endAt: shard.events, code(of: error))
            return fail(callID, method.hidesErrors(record.type) ? SecretError.hiding(error) : error, told)
        }
        let result = shard.reply.pointee.bytes
        let code = code(callID, result)
        succeed(callID, result.isEmpty ? nil : result, told)
        shard.didCall(method.row)
        told?.tell(endAt: shard.events, code)
    }

    /// The same for an actor whose changes are written before the answer leaves. A call that waits for that alone takes nothing but
    /// its place among the answers.
    ///
    /// - Returns: false when the actor has been let go: then nothing has been done.
    private func callInPlace(
        _ record: ActorRecord, _ persisted: PersistedStates, _ method: ActorMethod, _ message: borrowing Message
    ) -> Bool {
        let life = record.life
        guard life.enter() else { return false }
        defer { life.leave() }
        var weight = message.bytes.count + CallLoad.overhead
        if let refusal = refusal(ofBytes: weight) {
            fail(message, refusal)
            return true
        }
        load.count += 1
        load.bytes += weight
        shard.counts.count(.callsBegun)
        let told = toldIfWanted(method, record.type, message)
        let began = shard.beginsNow()
        let limit = timeLimit(of: message)
        let deadline = takeContinued()?.deadline ?? shard.reactor.now &+ limit.nanoseconds
        let outcome: Result<UnsafeRawBufferPointer, any Error>
        do {
            try told.during { try asCaller(hosting) { try shard.callInPlace(record, method, message, dates) } }
            outcome = .success(shard.reply.pointee.bytes)
            weight += countResult(shard.reply.pointee.count)
        } catch {
            outcome = .failure(method.hidesErrors(record.type) ? SecretError.hiding(error) : error)
        }
        let call = HeldCall(
            self, weight: weight, deadline: deadline, limit: limit, row: method.row, began: began, told: told)
        shard.reactor.workBegan = MonotonicClock.now
        persisted.whenWritten(call, message.callID, outcome)
        return true
    }

    /// What a result weighs that may have to wait: it counts when it is more than what is counted for each call, and leaves so
    /// much less room for the calls behind it.
    private func countResult(_ bytes: Int) -> Int {
        guard bytes > CallLoad.overhead else { return 0 }
        load.bytes += bytes
        _ = memory?.hold(bytes)
        return bytes
    }

    // MARK: With time

    /// Calls a method that may take time: its actor has to be made, or is on another reactor, or the method suspends, or what it
    /// changed is to be written.
    private func call(_ method: CalledMethod, of record: ActorRecord?, _ message: borrowing Message) {
        let isInTransit =
            if let record, let home = record.home {
                method.runsInPlace && home !== shard.states && record.persisted == nil
            } else {
                false
            }
        guard let call = begin(message, isInTransit: isInTransit) else { return }
        note(method, of: record?.type, message, in: call)
        let connection = self
        start(method, of: record, message, call) { connection.finish(call, $0, from: call.home) }
    }

    /// Makes the actor when it is not there, and runs the method.
    ///
    /// - Parameter completion: called on the thread where the call ends.
    func start(
        _ method: CalledMethod, of record: ActorRecord?, _ message: borrowing Message, _ call: RunningCall,
        _ completion: @escaping CallCompletion
    ) {
        if let record { return run(method, of: record, message, call, completion) }
        let kept = KeptMessage(message)
        wait(for: message.actorName, method, kept, call, completion)
    }

    func wait(
        for name: String, _ method: CalledMethod, _ kept: KeptMessage, _ call: RunningCall,
        _ completion: @escaping CallCompletion
    ) {
        // The connection is there as long as the call: it may outlive its link, when its answer is kept.
        let waiter = shard.awaitActor(ActorName(name), for: parties) { outcome in
            call.waiter = nil
            guard !call.isAnswered else { return }
            switch outcome {
            case .failure(let error):
                if ActorMoved.isIt(error), self.running[call.callID] === call {
                    self.withdraw(call)
                    return self.continuing(call) { kept.withMessage { self.handleAgain($0) } }
                }
                completion(.failure(error))
            case .success(let record):
                guard let method = method.again(in: record.type) else {
                    return completion(.failure(TrebuchetError(.methodNotFound, "the actor has been replaced")))
                }
                kept.withMessage { self.run(method, of: record, $0, call, completion) }
            }
        }
        if !call.isAnswered { call.waiter = waiter }
    }

    private func run(
        _ method: CalledMethod, of record: ActorRecord, _ message: borrowing Message, _ call: RunningCall,
        _ completion: @escaping CallCompletion
    ) {
        if let kept = call.kept, record.persisted?.earlier.contains(kept) == true {
            return completion(.failure(BegunEarlier()))
        }
        let dates = dates
        call.home = record.home
        guard let home = record.home, home !== shard.states else {
            call.isAtWork = true
            return asCaller(hosting) {
                if !shard.run(method, of: record, message, dates, call, completion) {
                    call.isAtWork = false
                    wait(for: record.name, method, KeptMessage(message), call, completion)
                }
            }
        }
        guard let there = shard.sibling(on: home) else {
            return completion(.failure(TrebuchetError(.unavailable, "the server has shut down")))
        }
        // Its bytes alone, which are looked through once more there: that takes less than what was found would.
        let bytes = Array(message.bytes)
        let connection = self
        let hosting = hosting
        let crossing = crossing(to: there.reactor)
        if call.isInTransit { call.crossing = crossing }
        call.isAtWork = true
        crossing.add {
            // It may have stood in line for long. A method that suspends sees by itself that it is cancelled.
            if method.runsInPlace, call.isCancelled { return completion(.failure(CancellationError())) }
            let isThere = connection.asCaller(hosting) {
                there.withMessage(bytes) { there.run(method, of: record, $0, dates, call, completion) }
            }
            guard isThere != true else { return }
            // It has been let go meanwhile. This reactor hears of that before what is sent now.
            connection.shard.reactor.execute {
                connection.didWork(call)
                guard !call.isAnswered else { return }
                guard let kept = connection.shard.withMessage(bytes, { KeptMessage($0) }) else {
                    return completion(.failure(TrebuchetError(.internal, "too many messages at once")))
                }
                connection.wait(for: record.name, method, kept, call, completion)
            }
        }
    }

    func crossing(to reactor: Reactor) -> CrossingCalls {
        if let crossing = crossings.first(where: { $0.reactor === reactor }) { return crossing }
        let crossing = CrossingCalls(on: reactor)
        crossings.append(crossing)
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
            ? "\(method.name) takes \(method.arguments) argument(s), got \(envelope.pointee.arguments.count)"
            : "\(method.name) takes \(method.generics) generic substitution(s), got "
                + "\(envelope.pointee.genericSubstitutions.count)"
        fail(message, TrebuchetError(.invalidArguments, text))
    }
}

extension ServerConnection: CallAnswerer {
    func answer(
        _ callID: UnsafeRawBufferPointer, _ outcome: Result<UnsafeRawBufferPointer, any Error>, of call: HeldCall
    ) {
        load.count -= 1
        load.bytes -= call.weight
        memory?.release(call.weight)
        shard.counts.count(.callsEnded)
        shard.counts.count(row: call.row, took: MonotonicClock.now &- call.began)
        if let told = call.told {
            let code = if case .success(let result) = outcome { code(callID, result) } else { code(of: outcome) }
            told.tell(endAt: shard.events, code)
        }
        guard isOpen else { return }
        switch outcome {
        case .success(let result): succeed(callID, result.isEmpty ? nil : result, call.told)
        case .failure(let error): fail(callID, error, call.told)
        }
    }
}

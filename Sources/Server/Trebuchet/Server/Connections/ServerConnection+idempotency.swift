internal import Platform
internal import Bytes
internal import Networking
internal import TrebuchetActors
internal import TrebuchetWire

/// Calls of `@Idempotent` methods, whose responses are recorded. They run at most once. A call continues when its connection ends,
/// and the client receives the response over the next connection.
extension ServerConnection {
    // MARK: The first time

    /// Calls an `@Idempotent` method for a client that may repeat the call. Authorization and arguments have been checked.
    func callOnce(_ method: ActorMethod, of record: ActorRecord?, _ message: borrowing Message) {
        guard let name = callName(message), let call = registerCall(message, isPermitted: true) else { return }
        recordCallStart(method, of: record?.type, message, in: call)
        callOnce(name, method, of: record, message, call)
    }

    private func callOnce(
        _ name: ServerIdempotencyCache.Memory.Name, _ method: ActorMethod, of record: ActorRecord?,
        _ message: borrowing Message, _ call: InFlightCall, hasLookedUp: Bool = false
    ) {
        let isRepeat = name.connection != self.name
        if !isRepeat { recordsResponses = true }
        // Outlives the connection, and refers to none of its bytes.
        let run = InFlightCall(of: call)
        call.run = run
        let waiting = waiting(call, message)
        let shard = shard
        let now = shard.reactor.now
        let request = request(message, isRepeat: isRepeat)
        if let outcome = shard.idempotencyCache.recordCall(name, request, waiting, at: now) {
            return handleOutcome(outcome, call)
        }
        if isRepeat { shard.counts.count(.repeatsRun) }
        let rest = Duration.nanoseconds(Int64(clamping: run.deadline > now ? run.deadline - now : 0))
        // A separate timer: the call of the connection may end earlier.
        let late = TrebuchetError(.timeout, "the call did not end before its deadline")
        run.timer = shard.reactor.schedule(after: rest) {
            run.cancel()
            shard.recordResponse(run, name, .failure(late))
        }
        run.didStopWaiting = {
            // The call of the connection has the same deadline, and is checked first.
            let isLate = shard.reactor.now >= run.deadline
            let cancelled = TrebuchetError(.cancelled, "the call was cancelled before its actor was activated")
            shard.recordResponse(run, name, .failure(isLate ? late : cancelled))
        }
        if shard.persistsStates {
            let key = IdempotencyNamespace.key(
                message.text(message.envelope.pointee.session), name.number, of: message.actorName)
            run.idempotencyRecord = IdempotencyRecord(
                key, digest: request.digest, principal: request.principal,
                in: shard.idempotencyCache.persistedResponseAccount(of: name.connection, request))
        }
        let isClustered = call.message != nil
        start(method, of: record, message, run) { outcome in
            if isClustered, case .failure(let error) = outcome {
                if ActorMoved.isIt(error) { return shard.reactor.run { shard.beginAgain(run, name) } }
                if ActorMoved.mayHaveBegun(error) { return shard.reactor.run { shard.repeatElsewhere(run, name) } }
                if error is PriorExecution {
                    return shard.reactor.run {
                        if !hasLookedUp { return shard.lookUpPriorExecution(run, name) }
                        // The log has no record either by now.
                        shard.recordResponse(run, name, .failure(ServerIdempotencyCache.Memory.forgotten))
                    }
                }
            }
            if run.home != nil, shard.reactor.isCurrent { return shard.recordResponse(run, name, outcome) }
            shard.deliver(from: run.home) { shard.recordResponse(run, name, outcome) }
        }
    }

    // MARK: Again

    /// Handles a call that was sent over an earlier connection and not answered.
    func receiveRepeat(_ message: borrowing Message) {
        guard hasName(message) else { return }
        if case .elsewhere(let type) = location(of: message) { return forward(type, message) }
        if isInterceptedRepeat(message) { return }
        if isOfEarlierServer(message) { return repeatEarlierCall(message) }
        guard let name = callName(message) else { return }
        guard name.connection != self.name else { return repeatCall(name, message) }
        // The client has left that connection. It is closed here before the repeat is handled, so that none of its unread calls is
        // executed later.
        let principal = callerConnection?.principal?.name
        let index = shard.idempotencyCache.names.reactor(of: name.connection)
        guard index < shard.siblings.count else { return }
        let old = shard.siblings[index]
        if old === shard {
            old.closeSession(name.connection, of: principal)
            return repeatCall(name, message)
        }
        // The waiting repeat counts as a running call.
        guard let call = registerCall(message, isPermitted: false) else { return }
        let owned = OwnedMessage(message)
        let connection = self
        old.reactor.execute {
            old.closeSession(name.connection, of: principal)
            connection.shard.reactor.execute {
                guard connection.isOpen, !call.isAnswered else { return }
                owned.withMessage {
                    if let refusal = connection.refusalOfReplacedPrincipal(call) {
                        return connection.refuse(call, $0, refusal)
                    }
                    connection.repeatCall(name, $0, call)
                }
            }
        }
    }

    /// - Parameter hasLookedUp: True if the store is known to have no record.
    func repeatCall(
        _ name: ServerIdempotencyCache.Memory.Name, _ message: borrowing Message, hasLookedUp: Bool = false
    ) {
        guard let call = registerCall(message, isPermitted: false) else { return }
        repeatCall(name, message, call, hasLookedUp: hasLookedUp)
    }

    /// Handles a repeat after the end of the first connection, whose calls have either started or never will.
    private func repeatCall(
        _ name: ServerIdempotencyCache.Memory.Name, _ message: borrowing Message, _ call: InFlightCall,
        hasLookedUp: Bool = false
    ) {
        let (record, target, refusal) = repeatedPlace(of: message, for: call)
        if let refusal { return refuse(call, message, refusal) }
        let isRepeat = name.connection != self.name
        if isRepeat || isCounted {
            call.repeated = InFlightCall.OriginalCall(actor: ActorName(message.actorName), home: record?.home)
        }
        let waiting = waiting(call, message)
        let now = shard.reactor.now
        let request = request(message, isRepeat: isRepeat)
        // The call may have run at the actor's previous owner. A record of that server outranks an expired entry here.
        let writer = hasLookedUp || !isClustered(ActorName(message.actorName)) ? nil : shard.clusteredWriter
        switch shard.idempotencyCache.join(name, request, waiting, at: now) {
        case nil: break
        case .forgotten?:
            if let writer { return lookUp(name, message, writer, call) }
            reportRejection(of: message, ServerIdempotencyCache.Memory.forgotten)
            return handleOutcome(.forgotten, call)
        case .refused(let error)?:
            reportRejection(of: message, error)
            return handleOutcome(.refused(error), call)
        case let outcome?: return handleOutcome(outcome, call)
        }
        guard let target else { return refuse(call, message, notExposed(message)) }
        guard case .method(let unmanaged) = target, unmanaged._withUnsafeGuaranteedRef({ $0.isIdempotent }) else {
            let text = "'\(target.name.prefix(bytes: 128))' is not marked @Idempotent at this server: it may have run"
            return refuse(call, message, TrebuchetError(.unknownOutcome, text))
        }
        let method = unmanaged.takeUnretainedValue()
        guard hasCounts(method, message) else {
            withdraw(call)
            return failCounts(method, message)
        }
        if let writer { return lookUp(name, message, writer, call) }
        if mayBeForgotten(name.number, message, of: request.scope) {
            return refuse(call, message, ServerIdempotencyCache.Memory.forgotten)
        }
        recordCallStart(method, of: record?.type, message, in: call)
        callOnce(name, method, of: record, message, call, hasLookedUp: hasLookedUp)
    }

    /// Answers a call from the store, or continues without a record.
    private func lookUp(
        _ name: ServerIdempotencyCache.Memory.Name, _ message: borrowing Message, _ writer: StateWriter,
        _ call: InFlightCall
    ) {
        let session = message.text(message.envelope.pointee.session)
        lookUp(message, session, name.number, writer, call) { answer, owned in
            if let answer {
                self.shard.counts.count(.repeatsAnswered)
                return self.deliver(answer, to: call)
            }
            self.withdraw(call)
            self.continuing(call) { owned.withMessage { self.repeatCall(name, $0, hasLookedUp: true) } }
        }
    }

    // MARK: Parts

    private func waiting(_ call: InFlightCall, _ message: borrowing Message) -> DuplicateCallWaiter {
        if isClustered(ActorName(message.actorName)) { call.message = OwnedMessage(message) }
        return DuplicateCallWaiter(connection: self, call: call)
    }

    /// Returns the actor and the target of a repeated call, and the reason to refuse it.
    ///
    /// - Parameter call: The repeat's own call.
    func repeatedPlace(
        of message: borrowing Message, for call: InFlightCall?
    ) -> (ActorRecord?, ActorType.Target?, refusal: TrebuchetError?) {
        let (record, type): (ActorRecord?, ActorType?) =
            switch location(of: message) {
            case .ready(let record): (record, record.type)
            case .inactive(let type), .elsewhere(let type): (nil, type)
            case .unknown: (nil, nil)
            }
        let target = type?.target(message.target)
        let name = target?.name ?? message.target
        guard isGuarded(name) else { return (record, target, nil) }
        return (record, target, refusal(of: name, message.actorName, for: call))
    }

    /// Distinguishes a repeat from another call with the same name. A client that reuses a name for another call affects only
    /// itself.
    ///
    /// Names are hashed by their decoded value, since servers that repeat calls write them again. Arguments are hashed as received,
    /// since every repeat keeps their bytes.
    func digest(of message: borrowing Message) -> UInt64 {
        let envelope = message.envelope
        var digest = StableDigest()
        let names = [envelope.pointee.actorID, envelope.pointee.targetIdentifier]
        for part in names + envelope.pointee.genericSubstitutions {
            guard part.isEscaped else {
                digest.combine(UInt64(message.bytes(part).count))
                digest.combine(message.bytes(part))
                continue
            }
            digest.combine(message.text(part))
        }
        for part in envelope.pointee.arguments {
            digest.combine(UInt64(message.bytes(part).count))
            digest.combine(message.bytes(part))
        }
        return digest.value
    }

    private func handleOutcome(_ outcome: ServerIdempotencyCache.Memory.Outcome, _ call: InFlightCall) {
        if call.repeated != nil { count(outcome) }
        switch outcome {
        case .waits(let first, let dropped):
            call.run = first.call.run
            guard let dropped else { return }
            dropped.connection.deliver(.failure(ServerIdempotencyCache.Memory.dropped), to: dropped.call)
        case .answered(let answer): deliver(answer, to: call)
        case .refused(let error): deliver(.failure(call.repeated == nil ? error : error.ofSentCall), to: call)
        case .exceeded(let exceeded):
            let error = shard.context.quotas.refusal(exceeded)
            deliver(.failure(call.repeated == nil ? error : error.ofSentCall), to: call)
        case .forgotten: deliver(.failure(ServerIdempotencyCache.Memory.forgotten), to: call)
        }
    }

    /// Delivers a recorded response. May be called on any reactor.
    func deliver(_ answer: ServerIdempotencyCache.Memory.Response, to call: InFlightCall) {
        let outcome: CallOutcome = answer.map { _CallResult(encoded: $0) }.mapError { $0 }
        let reactor = shard.reactor
        guard let repeated = call.repeated else {
            return reactor.run { self.finish(call, outcome, behindStreamsOf: call.run?.home) }
        }
        // The call's changes may not have reached this reactor, or not have left the actor's reactor: the response follows them.
        let here: @Sendable () -> Void = {
            self.shard.whenStreamsAreCurrent(for: call, of: self, repeated.actor, outcome.bytesOfResult) {
                self.finish(call, outcome)
            }
        }
        guard let home = repeated.home, home !== shard.states else { return reactor.execute(here) }
        home.reactor.execute {
            home.whenPublished { reactor.execute(here) }
        }
    }

    /// Returns the name of the current call; nil after a refusal.
    private func callName(_ message: borrowing Message) -> ServerIdempotencyCache.Memory.Name? {
        guard let number = number(of: message) else {
            refuse(TrebuchetError(.invalidArguments, "the callID of a call with a session is a number"), message)
            return nil
        }
        let isRepeat = message.kind == .repeat
        let text = message.text(message.envelope.pointee.session)
        guard let (connection, carried) = named(text) else {
            let error =
                isRepeat
                ? Self.ofEarlierServer
                : TrebuchetError(.invalidArguments, "'session' is not known to this server")
            refuse(error, message)
            return nil
        }
        guard isRepeat || connection == name else {
            let text = "'session' belongs to another connection; send its calls as 'repeat'"
            refuse(TrebuchetError(.invalidArguments, text), message)
            return nil
        }
        return ServerIdempotencyCache.Memory.Name(connection: connection, number: number, carried: carried)
    }

    /// Returns the connection with the name in a message; nil for an unknown one.
    func named(_ text: String) -> (CallSessionID, RemoteSessionAlias?)? {
        if let carried = upstream?.alias, carried.session.isSameBytes(as: text) { return (carried.name, carried) }
        if let name = shard.idempotencyCache.names.name(text, own: name) { return (name, nil) }
        return shard.idempotencyCache.names.carried.name(text).map { ($0.name, $0) }
    }

    private func refuse(_ error: TrebuchetError, _ message: borrowing Message) { fail(message, error) }

    /// Refuses a call that was recorded in `running`.
    private func refuse(_ call: InFlightCall, _ message: borrowing Message, _ error: TrebuchetError) {
        let error = refusal(error, of: message)
        reportRejection(of: message, error)
        finish(call, .failure(error))
    }

    private func request(
        _ message: borrowing Message, isRepeat: Bool
    ) -> ServerIdempotencyCache.Memory.Request {
        ServerIdempotencyCache.Memory.Request(
            digest: digest(of: message), principal: callerConnection?.principal?.id, isRepeat: isRepeat,
            host: link.host, isOfServer: isServer)
    }
}

extension ServerShard {
    /// Records the response of an `@Idempotent` call, or its timeout. Isolated to this reactor.
    func recordResponse(_ run: InFlightCall, _ name: ServerIdempotencyCache.Memory.Name, _ outcome: CallOutcome) {
        guard run.markAnswered() else {
            // Its deadline has passed: a later repeat gets the result.
            if case .success = outcome { idempotencyCache.replaceTimeout(name, answer(of: outcome)) }
            return
        }
        run.observedCall?.markEnded()
        let answer = answer(of: outcome)
        for waiting in idempotencyCache.recordResponse(name, answer, at: reactor.now) {
            waiting.connection.deliver(answer, to: waiting.call)
        }
        forgetAnswersLater(after: idempotencyCache.time)
    }

    /// Moves a recorded call that has not started to the next owner of its actor.
    func beginAgain(_ run: InFlightCall, _ name: ServerIdempotencyCache.Memory.Name) {
        takeBack(run, name) { $0.handleReturned($1) }
    }

    /// Repeats a kept call whose activation was given up before its change was acknowledged. The next owner finds its record in the log.
    func repeatElsewhere(_ run: InFlightCall, _ name: ServerIdempotencyCache.Memory.Name) {
        takeBack(run, name) { connection, message in
            // Its streams move to the next owner first.
            connection.moveStreams(of: [ActorName(message.actorName)])
            connection.repeatCall(message)
        }
    }

    /// Repeats a call that a previous owner started and recorded in its store.
    func lookUpPriorExecution(_ run: InFlightCall, _ name: ServerIdempotencyCache.Memory.Name) {
        takeBack(run, name) { $0.repeatCall(name, $1) }
    }

    /// - Parameter body: Receives the message of each waiting caller. The call may have arrived over several connections, each time
    ///   with another callID.
    private func takeBack(
        _ run: InFlightCall, _ name: ServerIdempotencyCache.Memory.Name,
        _ body: @escaping @Sendable (ServerConnection, borrowing Message) -> Void
    ) {
        guard run.markAnswered() else { return }
        for waiting in idempotencyCache.withdraw(name) {
            let (connection, call) = (waiting.connection, waiting.call)
            connection.shard.reactor.run {
                guard connection.isOpen, !call.isAnswered, let message = call.message else { return }
                connection.withdraw(call)
                connection.continuing(call) { message.withMessage { body(connection, $0) } }
            }
        }
    }

    /// Returns the recorded form of an outcome. Isolated to this reactor.
    func answer(of outcome: CallOutcome) -> ServerIdempotencyCache.Memory.Response {
        let coder = states.coder
        do {
            reply.pointee.reset(keepingAtMost: ServerShard.retainedReplyCapacity)
            try outcome.get().write(with: coder, into: &reply.pointee)
            return .success(Array(reply.pointee.bytes))
        } catch {
            let failure = CallFailure(error, of: "the method", coder: coder, context.disclosure)
            return .failure(
                TrebuchetError(.init(failure.code), failure.message, type: failure.type, data: failure.data))
        }
    }

    /// Ends a connection that its client has left, if it still exists and belongs to the principal.
    func closeSession(_ name: CallSessionID, of principal: PrincipalName?) {
        guard let connection = connections[name.number], connection.name == name,
            connection.callerConnection?.principal?.name == principal
        else { return }
        connection.link.abort()
        connection.linkDidClose()
    }

    private func forgetAnswersLater(after wait: Duration) {
        guard !willForgetAnswers else { return }
        willForgetAnswers = true
        reactor.schedule(after: wait) { [weak self] in
            guard let self else { return }
            self.willForgetAnswers = false
            if let next = self.idempotencyCache.removeExpired(at: self.reactor.now) {
                self.forgetAnswersLater(after: next)
            }
        }
    }
}

internal import Platform
internal import Bytes
internal import Networking
internal import TrebuchetActors
internal import TrebuchetWire

/// Calls of `@Idempotent` methods whose answers are kept. They run at most once: the connection that they came over may end,
/// they go on, and the client gets the answer over the next one.
extension ServerConnection {
    // MARK: The first time

    /// Calls an `@Idempotent` method for a client that may ask again. It may be called, and has what the method takes.
    func callOnce(_ method: ActorMethod, of record: ActorRecord?, _ message: borrowing Message) {
        guard let name = callName(message), let call = begin(message) else { return }
        note(.table(method), of: record?.type, message, in: call)
        callOnce(name, method, of: record, message, call)
    }

    private func callOnce(
        _ name: RememberedAnswers.Memory.Name, _ method: ActorMethod, of record: ActorRecord?,
        _ message: borrowing Message, _ call: RunningCall, hasLookedUp: Bool = false
    ) {
        let isRepeat = name.connection != self.name
        if !isRepeat { remembers = true }
        // It outlives the connection, and holds no bytes of it.
        let run = RunningCall(of: call)
        call.run = run
        let waiting = waiting(call, message)
        let shard = shard
        let now = shard.reactor.now
        let request = request(message, isRepeat: isRepeat)
        if let outcome = shard.answers.begin(name, request, waiting, at: now) {
            return take(outcome, call)
        }
        if isRepeat { shard.counts.count(.repeatsRun) }
        let rest = Duration.nanoseconds(Int64(clamping: run.deadline > now ? run.deadline - now : 0))
        // Not that of the connection's call: it may end before this does.
        let late = TrebuchetError(.timeout, "the call did not end before its deadline")
        run.timer = shard.reactor.schedule(after: rest) {
            run.cancel()
            shard.end(run, name, .failure(late))
        }
        run.didStopWaiting = {
            // The call of the connection has the same deadline, and looks first.
            let isLate = shard.reactor.now >= run.deadline
            let cancelled = TrebuchetError(.cancelled, "the call was cancelled before its actor was there")
            shard.end(run, name, .failure(isLate ? late : cancelled))
        }
        if shard.keepsStates {
            let key = CallNamespace.key(
                message.text(message.envelope.pointee.session), name.number, of: message.actorName)
            run.kept = KeptCall(
                key, digest: request.digest, principal: request.principal,
                in: shard.answers.storedRoom(of: name.connection, request))
        }
        let isPlaced = call.message != nil
        start(.table(method), of: record, message, run) { outcome in
            if isPlaced, case .failure(let error) = outcome {
                if ActorMoved.isIt(error) { return shard.reactor.run { shard.beginAgain(run, name) } }
                if ActorMoved.mayHaveBegun(error) { return shard.reactor.run { shard.repeatElsewhere(run, name) } }
                if error is BegunEarlier {
                    return shard.reactor.run {
                        if !hasLookedUp { return shard.askForIt(run, name) }
                        // Nor does the log know any more.
                        shard.end(run, name, .failure(RememberedAnswers.Memory.forgotten))
                    }
                }
            }
            if run.home != nil, shard.reactor.isCurrent { return shard.end(run, name, outcome) }
            shard.deliver(from: run.home) { shard.end(run, name, outcome) }
        }
    }

    // MARK: Again

    /// Handles a call that was sent over an earlier connection and not answered.
    func receiveRepeat(_ message: borrowing Message) {
        guard hasName(message) else { return }
        if case .elsewhere(let type) = place(of: message) { return forward(type, message) }
        if isOfEarlierServer(message) { return repeatEarlierCall(message) }
        guard let name = callName(message) else { return }
        guard name.connection != self.name else { return repeatCall(name, message) }
        // The client has left that connection. It ends here too before anything else, so that what is still under way over
        // it is never read: who has not come by then will not.
        let principal = caller?.principal?.name
        let index = shard.answers.names.reactor(of: name.connection)
        guard index < shard.siblings.count else { return }
        let old = shard.siblings[index]
        if old === shard {
            old.end(name.connection, of: principal)
            return repeatCall(name, message)
        }
        // Until it is back it is a call under way, as any that waits.
        guard let call = begin(message, isPermitted: false) else { return }
        let kept = KeptMessage(message)
        let connection = self
        old.reactor.execute {
            old.end(name.connection, of: principal)
            connection.shard.reactor.execute {
                guard connection.isOpen, !call.isAnswered else { return }
                kept.withMessage { connection.repeatCall(name, $0, call) }
            }
        }
    }

    /// - Parameter hasLookedUp: whether the store is known to have nothing of it.
    func repeatCall(
        _ name: RememberedAnswers.Memory.Name, _ message: borrowing Message, hasLookedUp: Bool = false
    ) {
        guard let call = begin(message, isPermitted: false) else { return }
        repeatCall(name, message, call, hasLookedUp: hasLookedUp)
    }

    /// The first connection has ended: what it brought has begun, or never will.
    private func repeatCall(
        _ name: RememberedAnswers.Memory.Name, _ message: borrowing Message, _ call: RunningCall,
        hasLookedUp: Bool = false
    ) {
        let (record, target, refusal) = repeatedPlace(of: message, for: call)
        if let refusal { return refuse(call, message, refusal) }
        let isRepeat = name.connection != self.name
        if isRepeat || isCounted {
            call.repeated = RunningCall.RepeatedCall(actor: ActorName(message.actorName), home: record?.home)
        }
        let waiting = waiting(call, message)
        let now = shard.reactor.now
        let request = request(message, isRepeat: isRepeat)
        // It may have run on another node, which had the actor before: what that has written says more than that calls are forgotten here.
        let writer = hasLookedUp || !isPlaced(ActorName(message.actorName)) ? nil : shard.placedWriter
        switch shard.answers.join(name, request, waiting, at: now) {
        case nil: break
        case .forgotten?:
            if let writer { return lookUp(name, message, writer, call) }
            tellRefusal(of: message, RememberedAnswers.Memory.forgotten)
            return take(.forgotten, call)
        case .refused(let error)?:
            tellRefusal(of: message, error)
            return take(.refused(error), call)
        case let outcome?: return take(outcome, call)
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
        if mayBeForgotten(name.number, message, of: request.party) {
            return refuse(call, message, RememberedAnswers.Memory.forgotten)
        }
        note(.table(method), of: record?.type, message, in: call)
        callOnce(name, method, of: record, message, call, hasLookedUp: hasLookedUp)
    }

    /// Answers what the store has of it; where that is nothing, goes on without.
    private func lookUp(
        _ name: RememberedAnswers.Memory.Name, _ message: borrowing Message, _ writer: StateWriter, _ call: RunningCall
    ) {
        let session = message.text(message.envelope.pointee.session)
        lookUp(message, session, name.number, writer, call) { answer, kept in
            if let answer {
                self.shard.counts.count(.repeatsAnswered)
                return self.deliver(answer, to: call)
            }
            self.withdraw(call)
            self.continuing(call) { kept.withMessage { self.repeatCall(name, $0, hasLookedUp: true) } }
        }
    }

    // MARK: Parts

    private func waiting(_ call: RunningCall, _ message: borrowing Message) -> WaitingCall {
        if isPlaced(ActorName(message.actorName)) { call.message = KeptMessage(message) }
        return WaitingCall(connection: self, call: call)
    }

    /// What a repeated call's name and target lead to here, and why it may not be made.
    ///
    /// - Parameter call: what it is already.
    func repeatedPlace(
        of message: borrowing Message, for call: RunningCall?
    ) -> (ActorRecord?, ActorType.Target?, refusal: TrebuchetError?) {
        let (record, type): (ActorRecord?, ActorType?) =
            switch place(of: message) {
            case .ready(let record): (record, record.type)
            case .unmade(let type), .elsewhere(let type): (nil, type)
            case .nowhere: (nil, nil)
            }
        let target = type?.target(message.target)
        guard isGuarded else { return (record, target, nil) }
        return (record, target, refusal(of: target?.name ?? message.target, message.actorName, for: call))
    }

    /// Tells a repeat from another call under the same name. Who sends another one under the name of its own deceives nobody but itself.
    ///
    /// Names count as what they are, however their JSON is written: nodes repeat calls, and write these anew. Arguments count as they
    /// came, which all who repeat a call leave as they are.
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

    private func take(_ outcome: RememberedAnswers.Memory.Outcome, _ call: RunningCall) {
        if call.repeated != nil { count(outcome) }
        switch outcome {
        case .waits(let first, let dropped):
            call.run = first.call.run
            guard let dropped else { return }
            dropped.connection.deliver(.failure(RememberedAnswers.Memory.dropped), to: dropped.call)
        case .answered(let answer): deliver(answer, to: call)
        case .refused(let error): deliver(.failure(error), to: call)
        case .forgotten: deliver(.failure(RememberedAnswers.Memory.forgotten), to: call)
        }
    }

    /// From any reactor.
    func deliver(_ answer: RememberedAnswers.Memory.Answer, to call: RunningCall) {
        let outcome: CallOutcome = answer.map { _CallResult(encoded: $0) }.mapError { $0 }
        let reactor = shard.reactor
        guard let repeated = call.repeated else {
            return reactor.run { self.finish(call, outcome, behindStreamsOf: call.run?.home) }
        }
        // What the call has changed may be on its way here, or not have left its actor's reactor: the answer goes behind it.
        let here: @Sendable () -> Void = {
            self.shard.whenStreamsShow(for: call, of: self, repeated.actor, outcome.bytesOfResult) {
                self.finish(call, outcome)
            }
        }
        guard let home = repeated.home, home !== shard.states else { return reactor.execute(here) }
        home.reactor.execute {
            home.publishMarked()
            reactor.execute(here)
        }
    }

    /// The name of the call that is in hand; nil after a refusal.
    private func callName(_ message: borrowing Message) -> RememberedAnswers.Memory.Name? {
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
                : TrebuchetError(.invalidArguments, "'session' is none of this server's")
            refuse(error, message)
            return nil
        }
        guard isRepeat || connection == name else {
            let text = "'session' is that of another connection; what was sent there is a 'repeat' here"
            refuse(TrebuchetError(.invalidArguments, text), message)
            return nil
        }
        return RememberedAnswers.Memory.Name(connection: connection, number: number, carried: carried)
    }

    /// The connection of a name that stands in a message; nil when that is none which is known here.
    func named(_ text: String) -> (ConnectionName, CarriedName?)? {
        if let carried = upstream?.carried, carried.session.isSameBytes(as: text) { return (carried.name, carried) }
        if let name = shard.answers.names.name(text, own: name) { return (name, nil) }
        return shard.answers.names.carried.name(text).map { ($0.name, $0) }
    }

    private func refuse(_ error: TrebuchetError, _ message: borrowing Message) { fail(message, error) }

    /// A call that was noted, and is not made.
    private func refuse(_ call: RunningCall, _ message: borrowing Message, _ error: TrebuchetError) {
        tellRefusal(of: message, error)
        finish(call, .failure(error))
    }

    private func request(
        _ message: borrowing Message, isRepeat: Bool
    ) -> RememberedAnswers.Memory.Request {
        RememberedAnswers.Memory.Request(
            digest: digest(of: message), principal: caller?.principal?.id, isRepeat: isRepeat, host: link.host,
            isOfServer: isServer)
    }
}

extension ServerShard {
    /// A kept call has its answer: from its method, or from its deadline. On this reactor.
    func end(_ run: RunningCall, _ name: RememberedAnswers.Memory.Name, _ outcome: CallOutcome) {
        guard run.end() else {
            // Its deadline has passed: a later repeat gets the result.
            if case .success = outcome { answers.amend(name, answer(of: outcome)) }
            return
        }
        run.told?.end()
        let answer = answer(of: outcome)
        for waiting in answers.end(name, answer, at: reactor.now) {
            waiting.connection.deliver(answer, to: waiting.call)
        }
        forgetAnswersLater(after: answers.time)
    }

    /// A kept call was not begun, as its actor has gone to another node: it goes there.
    func beginAgain(_ run: RunningCall, _ name: RememberedAnswers.Memory.Name) {
        takeBack(run, name) { $0.handleAgain($1) }
    }

    /// Repeats a kept call whose activation was given up before its change was acknowledged. The next owner finds its record in the log.
    func repeatElsewhere(_ run: RunningCall, _ name: RememberedAnswers.Memory.Name) {
        takeBack(run, name) { connection, message in
            // Its streams first: they move to the next owner too.
            connection.moveStreams(of: [ActorName(message.actorName)])
            connection.repeatAgain(message)
        }
    }

    /// A kept call was begun by an owner before, whose store has what became of it.
    func askForIt(_ run: RunningCall, _ name: RememberedAnswers.Memory.Name) {
        takeBack(run, name) { $0.repeatCall(name, $1) }
    }

    /// - Parameter body: given the message of each that waits for the call. It may have come over several connections, each time
    ///   under a callID of its own.
    private func takeBack(
        _ run: RunningCall, _ name: RememberedAnswers.Memory.Name,
        _ body: @escaping @Sendable (ServerConnection, borrowing Message) -> Void
    ) {
        guard run.end() else { return }
        for waiting in answers.withdraw(name) {
            let (connection, call) = (waiting.connection, waiting.call)
            connection.shard.reactor.run {
                guard connection.isOpen, !call.isAnswered, let message = call.message else { return }
                connection.withdraw(call)
                connection.continuing(call) { message.withMessage { body(connection, $0) } }
            }
        }
    }

    /// What is kept of an outcome. On this reactor.
    func answer(of outcome: CallOutcome) -> RememberedAnswers.Memory.Answer {
        let coder = states.coder
        do {
            reply.pointee.reset(keepingAtMost: ServerShard.keptReply)
            try outcome.get().write(with: coder, into: &reply.pointee)
            return .success(Array(reply.pointee.bytes))
        } catch {
            let failure = CallFailure(error, of: "the method", coder: coder, parts.disclosure)
            return .failure(
                TrebuchetError(.init(failure.code), failure.message, type: failure.type, data: failure.data))
        }
    }

    /// Ends a connection that its client has left, if it is still there. A stranger's is left alone.
    func end(_ name: ConnectionName, of principal: PrincipalName?) {
        guard let connection = connections[name.number], connection.name == name,
            connection.caller?.principal?.name == principal
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
            if let next = self.answers.forget(at: self.reactor.now) { self.forgetAnswersLater(after: next) }
        }
    }
}

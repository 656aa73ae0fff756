internal import Bytes
internal import Networking
internal import TrebuchetWire

/// Calls of `@Idempotent` methods whose answers are kept. They run at most once: the connection that they came over may end,
/// they go on, and the client gets the answer over the next one.
extension Session {
    // MARK: The first time

    /// Calls an `@Idempotent` method for a client that may ask again.
    func callOnce(_ record: ActorRecord, _ method: ActorMethod, _ message: UnsafeRawBufferPointer) {
        guard isAdmissible(record, method, message), let name = callName(message), let call = begin(message) else {
            return
        }
        let isRepeat = name.session != self.name
        if !isRepeat { remembers = true }
        let run = RunningCall(callID: call.callID, deadline: call.deadline)
        call.run = run
        let waiting = WaitingCall(session: self, call: call)
        if let outcome = shard.answers.begin(name, request(message, isRepeat: isRepeat), waiting) {
            return take(outcome, call)
        }
        start(run, name, record, method, message)
    }

    private func start(
        _ run: RunningCall, _ name: RememberedAnswers.Memory.Name, _ record: ActorRecord, _ method: ActorMethod,
        _ message: UnsafeRawBufferPointer
    ) {
        let shard = shard
        let now = MonotonicClock.now
        let rest = Duration.nanoseconds(Int64(clamping: run.deadline > now ? run.deadline - now : 0))
        // Not that of the connection's call: it may end before this does.
        run.timer = shard.reactor.schedule(after: rest) {
            run.cancel()
            shard.end(run, name, .failure(TrebuchetError(.timeout, "the call did not end before its deadline")))
        }
        let home = record.home
        let complete: @Sendable (Result<CallResult, any Error>) -> Void = { outcome in
            if let home, home.reactor.isCurrent, !shard.reactor.isCurrent { home.publishMarked() }
            shard.reactor.run { shard.end(run, name, outcome) }
        }
        guard method.runsInPlace, home === shard.states, record.starting == 0 else {
            return start(record, method, message, run, complete)
        }
        let outcome = Result<CallResult, any Error> {
            try asCaller { try shard.callInPlace(record, method, message, version) }
            return CallResult(encoded: Array(shard.reply.pointee.bytes))
        }
        record.whenWritten(outcome, complete)
    }

    // MARK: Again

    /// Handles a call that was sent over an earlier connection and not answered.
    func receiveRepeat(_ message: UnsafeRawBufferPointer) {
        guard let name = callName(message) else { return }
        guard name.session != self.name else { return repeatCall(name, message) }
        // The client has left that connection. It ends here too before anything else, so that what is still under way over
        // it is never read: who has not come by then will not.
        let principal = caller?.principal?.id
        let old = shard.siblings[shard.answers.names.reactor(of: name.session)]
        if old === shard {
            old.end(name.session, of: principal)
            return repeatCall(name, message)
        }
        let copy = Array(message)
        let (reactor, session) = (shard.reactor, self)
        old.reactor.execute {
            old.end(name.session, of: principal)
            reactor.execute { session.repeatCall(name, copy) }
        }
    }

    private func repeatCall(_ name: RememberedAnswers.Memory.Name, _ copy: [UInt8]) {
        guard isOpen else { return }
        copy.withUnsafeBytes { message in
            guard (try? shard.envelope.pointee.scan(message)) != nil else { return }
            repeatCall(name, message)
        }
    }

    /// The first connection has ended: what it brought has begun, or never will.
    private func repeatCall(_ name: RememberedAnswers.Memory.Name, _ message: UnsafeRawBufferPointer) {
        guard let call = begin(message) else { return }
        let isRepeat = name.session != self.name
        let waiting = WaitingCall(session: self, call: call)
        if let outcome = shard.answers.join(name, request(message, isRepeat: isRepeat), waiting) {
            return take(outcome, call)
        }
        withdraw(call)
        let envelope = shard.envelope
        let copy = Array(message)
        do {
            let record = try shard.find(envelope.pointee.string(envelope.pointee.actorID, in: message)) {
                [weak self] outcome in
                guard let self, self.isOpen else { return }
                copy.withUnsafeBytes { self.retry($0, outcome) }
            }
            guard let record else { return }
            let target = envelope.pointee.string(envelope.pointee.targetIdentifier, in: message)
            guard let method = target.withContiguousBytes({ record.method($0) })?.takeUnretainedValue(),
                method.isIdempotent
            else {
                let text = "'\(target)' is not marked @Idempotent at this server: it may have run"
                throw TrebuchetError(.unknownOutcome, text)
            }
            callOnce(record, method, message)
        } catch {
            fail(envelope.pointee.callID.bytes(in: message), error)
        }
    }

    // MARK: Parts

    private func take(_ outcome: RememberedAnswers.Memory.Outcome, _ call: RunningCall) {
        switch outcome {
        case .waits(let first): call.run = first.call.run
        case .answered(let answer): deliver(answer, to: call)
        case .refused(let error): deliver(.failure(error), to: call)
        }
    }

    /// From any reactor.
    func deliver(_ answer: RememberedAnswers.Memory.Answer, to call: RunningCall) {
        finish(call, answer.map { CallResult(encoded: $0) }.mapError { $0 }, publishing: nil)
    }

    /// The name of the call that lies in the envelope; nil after a refusal.
    private func callName(_ message: UnsafeRawBufferPointer) -> RememberedAnswers.Memory.Name? {
        let envelope = shard.envelope
        let callID = envelope.pointee.string(envelope.pointee.callID, in: message)
        guard let number = UInt64(callID) else {
            refuse(TrebuchetError(.invalidArguments, "the callID of a call with a session is a number"), message)
            return nil
        }
        let isRepeat = envelope.pointee.kind == .repeat
        let text = envelope.pointee.string(envelope.pointee.session, in: message)
        guard let session = shard.answers.names.name(text, own: self.name) else {
            let text = "'session' is none of this server's"
            let code: TrebuchetError.Code = isRepeat ? .unknownOutcome : .invalidArguments
            refuse(TrebuchetError(code, isRepeat ? "\(text): another one may have run the call" : text), message)
            return nil
        }
        guard isRepeat || session == name else {
            let text = "'session' is that of another connection; what was sent there is a 'repeat' here"
            refuse(TrebuchetError(.invalidArguments, text), message)
            return nil
        }
        return RememberedAnswers.Memory.Name(session: session, number: number)
    }

    private func refuse(_ error: TrebuchetError, _ message: UnsafeRawBufferPointer) {
        fail(shard.envelope.pointee.callID.bytes(in: message), error)
    }

    private func request(_ message: UnsafeRawBufferPointer, isRepeat: Bool) -> RememberedAnswers.Memory.Request {
        let envelope = shard.envelope
        var hasher = Hasher()
        let parts = envelope.pointee.genericSubstitutions + envelope.pointee.arguments
        for part in [envelope.pointee.actorID, envelope.pointee.targetIdentifier] + parts {
            hasher.combine(part.bytes(in: message).count)
            hasher.combine(bytes: part.bytes(in: message))
        }
        return RememberedAnswers.Memory.Request(
            digest: hasher.finalize(), principal: caller?.principal?.id, isRepeat: isRepeat, host: link.host)
    }
}

extension ServerShard {
    /// A kept call has its answer: from its method, or from its deadline. On this reactor.
    func end(_ run: RunningCall, _ name: RememberedAnswers.Memory.Name, _ outcome: Result<CallResult, any Error>) {
        guard !run.isAnswered else { return }
        run.isAnswered = true
        run.timer?.cancel()
        let coder = states.coder(for: .v3)
        let answer: RememberedAnswers.Memory.Answer
        do {
            reply.pointee.removeAll()
            try outcome.get().write?(coder, &reply.pointee)
            answer = .success(Array(reply.pointee.bytes))
        } catch {
            let failure = CallFailure(error, coder: coder)
            answer = .failure(
                TrebuchetError(.init(failure.code), failure.message, type: failure.type, data: failure.data))
        }
        for waiting in answers.end(name, answer) { waiting.session.deliver(answer, to: waiting.call) }
        forgetAnswersLater(after: answers.time)
    }

    /// Ends a connection that its client has left, if it is still there. A stranger's is left alone.
    func end(_ name: SessionName, of principal: String?) {
        guard let session = sessions[name.number], session.name == name, session.caller?.principal?.id == principal
        else { return }
        session.link.abort()
        session.linkDidClose()
    }

    private func forgetAnswersLater(after wait: Duration) {
        guard !willForgetAnswers else { return }
        willForgetAnswers = true
        reactor.schedule(after: wait) { [weak self] in
            guard let self else { return }
            self.willForgetAnswers = false
            if let next = self.answers.forget() { self.forgetAnswersLater(after: next) }
        }
    }
}

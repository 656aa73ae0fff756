internal import Bytes
internal import Networking
internal import TrebuchetWire

extension Session {
    /// Handles the invocation that lies in the shard's envelope.
    func invoke(_ message: UnsafeRawBufferPointer) {
        let envelope = shard.envelope
        if version != .v3 { noteVersion() }
        let name = envelope.pointee.actorID
        if !name.isEscaped, let record = shard.record(name.bytes(in: message)) {
            return record._withUnsafeGuaranteedRef { invoke($0, message) }
        }
        do {
            let copy = Array(message)
            let record = try shard.find(envelope.pointee.string(name, in: message)) { [weak self] outcome in
                guard let self, self.isOpen else { return }
                copy.withUnsafeBytes { self.retry($0, outcome) }
            }
            if let record { invoke(record, message) }
        } catch {
            fail(envelope.pointee.callID.bytes(in: message), error)
        }
    }

    /// A call whose actor has been made meanwhile, or could not be.
    func retry(_ message: UnsafeRawBufferPointer, _ outcome: Result<Void, any Error>) {
        switch outcome {
        case .success:
            receive(message)
        case .failure(let error):
            guard (try? shard.envelope.pointee.scan(message)) != nil else { return }
            fail(shard.envelope.pointee.callID.bytes(in: message), error)
        }
    }

    private func invoke(_ record: ActorRecord, _ message: UnsafeRawBufferPointer) {
        let envelope = shard.envelope
        let target = envelope.pointee.targetIdentifier
        var method = target.isEscaped ? nil : record.method(target.bytes(in: message))
        if method == nil {
            let identifier = envelope.pointee.string(target, in: message)
            let name = shard.wireName(identifier)
            if record.streamNames.contains(name) { return handleStreamingInvocation(record, stream: name, message) }
            method = name.withContiguousBytes { record.method($0) }
            if method == nil, executeTarget(identifier, record, message) { return }
        }
        guard let method else { return failUnknownMethod(record, message) }
        method._withUnsafeGuaranteedRef { invoke(record, $0, message) }
    }

    @inline(__always)
    private func invoke(_ record: ActorRecord, _ method: ActorMethod, _ message: UnsafeRawBufferPointer) {
        if method.isIdempotent, !shard.envelope.pointee.session.isAbsent { return callOnce(record, method, message) }
        guard isAdmissible(record, method, message) else { return }
        if method.runsInPlace, record.home === shard.states, record.starting == 0 {
            guard record.persisted == nil else { return callPersisted(record, method, message) }
            callInPlace(record, method, message)
        } else {
            start(record, method, message)
        }
    }

    /// Whether the call may be made and has what the method takes; false after a refusal.
    @inline(__always)
    func isAdmissible(_ record: ActorRecord, _ method: ActorMethod, _ message: UnsafeRawBufferPointer) -> Bool {
        let envelope = shard.envelope
        if shard.isGuarded, let refusal = refusal(of: method.name, record.name) {
            fail(envelope.pointee.callID.bytes(in: message), refusal)
            return false
        }
        guard
            envelope.pointee.arguments.count == method.arguments,
            envelope.pointee.genericSubstitutions.count == method.generics
        else {
            failCounts(method, message)
            return false
        }
        return true
    }

    // MARK: In place

    /// The hot path: decode, call, encode and answer without leaving this thread.
    private func callInPlace(_ record: ActorRecord, _ method: ActorMethod, _ message: UnsafeRawBufferPointer) {
        let callID = shard.envelope.pointee.callID.bytes(in: message)
        do {
            try asCaller { try shard.callInPlace(record, method, message, version) }
        } catch {
            return fail(callID, error)
        }
        let result = shard.reply.pointee.bytes
        succeed(callID, result.isEmpty ? nil : result)
    }

    /// The same for an actor whose states are kept in a store.
    private func callPersisted(_ record: ActorRecord, _ method: ActorMethod, _ message: UnsafeRawBufferPointer) {
        guard let call = begin(message) else { return }
        let session = self
        let outcome = Result<CallResult, any Error> {
            try asCaller { try shard.callInPlace(record, method, message, version) }
            return CallResult(encoded: Array(shard.reply.pointee.bytes))
        }
        record.whenWritten(outcome) { session.finish(call, $0) }
    }

    // MARK: In a task, or on another reactor

    private func start(_ record: ActorRecord, _ method: ActorMethod, _ message: UnsafeRawBufferPointer) {
        guard let call = begin(message) else { return }
        let (session, home) = (self, record.home)
        start(record, method, message, call) { session.finish(call, $0, publishing: home) }
    }

    /// `completion` is called on the thread where the call ends.
    func start(
        _ record: ActorRecord, _ method: ActorMethod, _ message: UnsafeRawBufferPointer, _ call: RunningCall,
        _ completion: @escaping @Sendable (Result<CallResult, any Error>) -> Void
    ) {
        var completion = completion
        if record.persisted != nil {
            completion = { [completion] outcome in record.whenWritten(outcome, completion) }
        }
        if let home = record.home, home !== shard.states {
            let copy = Array(message)
            let (session, version, completion) = (self, version, completion)
            home.reactor.execute {
                guard let shard = session.shard.sibling(on: home) else { return }
                session.asCaller { shard.run(record, method, copy, version, call, completion) }
            }
            return
        }
        let operation: CallOperation
        do {
            operation = try shard.operation(record, method, message, version)
        } catch {
            return completion(.failure(error))
        }
        asCaller { CallTask.start(record, operation, call, completion) }
    }

    /// Calls a method that no dispatch table has. False when the actor has none of that name.
    private func executeTarget(
        _ identifier: String, _ record: ActorRecord, _ message: UnsafeRawBufferPointer
    ) -> Bool {
        let envelope = shard.envelope.pointee
        let arguments = envelope.arguments.map { range -> [UInt8] in
            let bytes = range.bytes(in: message)
            guard version != .v3 else { return Array(bytes) }
            return (try? withDecodedBase64(bytes) { Array($0) }) ?? []
        }
        let decoder = CallInvocationDecoder(
            arguments: arguments,
            genericNames: envelope.genericSubstitutions.map { envelope.string($0, in: message) },
            coder: shard.states.newCoder(for: version))
        guard let operation = record.executeTarget(identifier, decoder, in: shard.system) else { return false }
        guard let call = begin(message) else { return true }
        let session = self
        if shard.isGuarded, let refusal = refusal(of: shard.wireName(identifier), record.name) {
            withdraw(call)
            fail(call.callID, refusal)
            return true
        }
        asCaller {
            CallTask.start(record, operation, call) { outcome in
                record.whenWritten(outcome) { session.finish(call, $0, publishing: nil) }
            }
        }
        return true
    }

    /// Notes a call that is not answered at once; nil when it was refused.
    func begin(_ message: UnsafeRawBufferPointer) -> RunningCall? {
        let envelope = shard.envelope
        let callID = Array(envelope.pointee.callID.bytes(in: message))
        guard running.count < shard.limits.callsPerConnection else {
            let text = "\(shard.limits.callsPerConnection) calls of this connection are under way already"
            fail(callID, TrebuchetError(.rateLimited, text))
            return nil
        }
        guard running[callID] == nil else {
            let text = "callID '\(String(decoding: callID, as: UTF8.self))' is in use by a call under way"
            link.send { EnvelopeWriter.error(code: .malformedEnvelope, message: text, into: &$0) }
            return nil
        }
        let limit = envelope.pointee.timeoutMilliseconds.map { Duration.milliseconds($0) } ?? shard.limits.callTimeout
        let call = RunningCall(callID: callID, deadline: MonotonicClock.now &+ limit.nanoseconds)
        call.timer = shard.reactor.schedule(after: limit) { [weak self, weak call] in
            guard let self, let call else { return }
            call.cancel()
            self.finish(call, .failure(TrebuchetError(.timeout, "the call took longer than \(limit)")))
        }
        running[callID] = call
        return call
    }

    /// Takes back `begin`.
    func withdraw(_ call: RunningCall) {
        call.timer?.cancel()
        running[call.callID] = nil
    }

    /// Answers a call that ran in a task, from whatever thread it ended on.
    func finish(_ call: RunningCall, _ outcome: Result<CallResult, any Error>, publishing home: ReactorShard?) {
        if shard.reactor.isCurrent { return finish(call, outcome) }
        // What the call changed goes first, so that its caller sees it before the answer.
        if let home, home.reactor.isCurrent { home.publishMarked() }
        shard.reactor.execute { self.finish(call, outcome) }
    }

    private func finish(_ call: RunningCall, _ outcome: Result<CallResult, any Error>) {
        guard !call.isAnswered else { return }
        call.isAnswered = true
        call.timer?.cancel()
        running[call.callID] = nil
        guard isOpen else { return }
        do {
            let result = try outcome.get()
            shard.reply.pointee.removeAll()
            try result.write?(shard.states.coder(for: version), &shard.reply.pointee)
            let bytes = shard.reply.pointee.bytes
            call.callID.withUnsafeBytes { succeed($0, result.write == nil ? nil : bytes) }
        } catch {
            fail(call.callID, error)
        }
    }

    /// The client does not want the answer any more.
    func cancel(_ message: UnsafeRawBufferPointer) {
        let callID = Array(shard.envelope.pointee.callID.bytes(in: message))
        guard let call = running[callID] else { return }
        call.cancel()
        finish(call, .failure(TrebuchetError(.cancelled, "the call was cancelled by its caller")))
    }

    // MARK: Refusals

    private func failUnknownMethod(_ record: ActorRecord, _ message: UnsafeRawBufferPointer) {
        let target = shard.envelope.pointee.string(shard.envelope.pointee.targetIdentifier, in: message)
        var text = "actor '\(record.name)' has no method '\(target)'"
        let known = record.methodNames + record.streamNames
        if !known.isEmpty { text += "; it has " + known.joined(separator: ", ") }
        fail(shard.envelope.pointee.callID.bytes(in: message), TrebuchetError(.methodNotFound, text))
    }

    private func failCounts(_ method: ActorMethod, _ message: UnsafeRawBufferPointer) {
        let envelope = shard.envelope.pointee
        let text =
            envelope.arguments.count != method.arguments
            ? "\(method.name) takes \(method.arguments) argument(s), got \(envelope.arguments.count)"
            : "\(method.name) takes \(method.generics) generic substitution(s), got \(envelope.genericSubstitutions.count)"
        fail(envelope.callID.bytes(in: message), TrebuchetError(.invalidArguments, text))
    }
}

extension String {
    /// Calls `body` with the UTF-8 bytes.
    func withContiguousBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        var copy = self
        return try copy.withUTF8 { try body(UnsafeRawBufferPointer($0)) }
    }
}

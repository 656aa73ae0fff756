internal import Bytes
internal import Platform
internal import TrebuchetActors
internal import TrebuchetWire

/// Repeats of calls that were sent to an earlier server with the same store, which has recorded the calls that changed persisted
/// states.
extension ServerConnection {
    /// Returns whether a repeat is of a call to another server, possibly an earlier process of this one.
    func isOfEarlierServer(_ message: borrowing Message) -> Bool {
        named(message.text(message.envelope.pointee.session)) == nil && writer(for: message) != nil
    }

    /// Returns the writer of the states of a message's actor; nil where they are not persisted.
    private func writer(for message: borrowing Message) -> StateWriter? {
        isClustered(ActorName(message.actorName)) ? shard.clusteredWriter : shard.stateWriter
    }

    /// Answers a repeat from the store. The call never runs here: it may have run without a record.
    func repeatEarlierCall(_ message: borrowing Message) {
        guard let writer = writer(for: message), let number = number(of: message) else {
            return fail(
                message, TrebuchetError(.invalidArguments, "the callID of a call with a session is a number"))
        }
        let (record, _, refusal) = repeatedPlace(of: message, for: nil)
        if let refusal { return fail(message, refusal) }
        let session = message.text(message.envelope.pointee.session)
        // Every server limits its names to this length; longer ones need no store access.
        guard session.utf8.count <= CallSessionRegistry.longest, let parts = QualifiedCallSessionID(session),
            parts.instance != shard.idempotencyCache.names.instance
        else { return fail(message, Self.ofEarlierServer) }
        guard let call = registerCall(message, isPermitted: true) else { return }
        call.repeated = InFlightCall.OriginalCall(actor: ActorName(message.actorName), home: record?.home)
        // If only its server may write the actor, a call without a record has changed nothing and never will.
        let runsAgain = isClustered(ActorName(message.actorName))
        lookUp(message, session, number, writer, call) { answer, owned in
            guard answer == nil, runsAgain else {
                return self.deliver(answer ?? .failure(Self.ofEarlierServer), to: call)
            }
            self.withdraw(call)
            self.continuing(call) { owned.withMessage { self.rerunCall($0, session, number) } }
        }
    }

    /// Returns whether the actor lives on one server of several.
    func isClustered(_ name: ActorName) -> Bool {
        shard.context.router != nil && shard.directory.clusteredType(of: name) != nil
    }

    /// Looks a call up in the store; passes nil to `body` when the store has no record. Does not call `body` when the call was
    /// answered meanwhile. Retries an unreachable store until the call's deadline; another server continues if it owns the actor by
    /// then.
    func lookUp(
        _ message: borrowing Message, _ session: String, _ number: UInt64, _ writer: StateWriter, _ call: InFlightCall,
        _ body: @escaping (RecordedResponse?, OwnedMessage) -> Void
    ) {
        let key = IdempotencyNamespace.key(session, number, of: message.actorName)
        let digest = digest(of: message)
        let principal = callerConnection?.principal?.name
        let (reactor, owned) = (shard.reactor, OwnedMessage(message))
        nonisolated(unsafe) let body = body  // Called only on the reactor that passed it.
        let name = ActorName(message.actorName)
        call.isAtWork = true
        // Runs on the reactor, as writes do: a store that only forwards the work then uses no other thread.
        Task.immediate(executorPreference: reactor.taskExecutor) {
            var answer: RecordedResponse?
            var mayBeReadLater = false
            do throws(StateStoreError) {
                answer = try await writer.store.get(key).map { Self.answer($0, digest, principal) }
            } catch {
                mayBeReadLater = error.code == .unavailable || error.code == .conflict
                let text = "the outcome of the call cannot be read: \(error.message)"
                // A client that asks again must not conclude that the call was not executed.
                answer = .failure(TrebuchetError(.unknownOutcome, text))
            }
            let (found, isLater) = (answer, mayBeReadLater && self.isClustered(name))
            reactor.execute {
                self.didWork(call)
                guard self.isOpen, !call.isAnswered else { return }
                guard isLater else { return body(found, owned) }
                self.shard.reactor.schedule(after: Self.retryPause) {
                    guard self.isOpen, !call.isAnswered else { return }
                    owned.withMessage { message in
                        guard case .elsewhere = self.location(of: message) else {
                            return self.lookUp(message, session, number, writer, call, body)
                        }
                        self.withdraw(call)
                        self.continuing(call) { self.repeatCall(message) }
                    }
                }
            }
        }
    }

    /// Runs a call that another server may have received and did not execute. It keeps its name of that server, so that it is recognized
    /// should it still arrive. The name is unused if the call does not start.
    private func rerunCall(_ message: borrowing Message, _ session: String, _ number: UInt64) {
        let carried = shard.idempotencyCache.names.carry(session, onReactor: shard.index, isVerified: false)
        repeatCall(
            ServerIdempotencyCache.Memory.Name(connection: carried.name, number: number, carried: carried), message,
            hasLookedUp: true)
    }

    /// Returns whether a call of another server's connection may have run here and its record is no longer kept.
    func mayBeForgotten(_ number: UInt64, _ message: borrowing Message, of scope: QuotaScope) -> Bool {
        guard message.kind == .repeat, shard.context.router != nil,
            let session = QualifiedCallSessionID(message.text(message.envelope.pointee.session)),
            session.instance != shard.idempotencyCache.names.instance
        else { return false }
        return shard.idempotencyCache.names.carried.mayHaveRun(number, over: session, of: scope)
    }

    private static func answer(_ stored: [UInt8], _ digest: UInt64, _ principal: PrincipalName?) -> RecordedResponse {
        guard let call = try? PersistedIdempotencyRecord(stored) else { return .failure(ofEarlierServer) }
        // A response is delivered only to the principal of the call.
        guard call.principal.map({ PrincipalName($0) }) == principal else { return .failure(ofEarlierServer) }
        guard call.digest == digest else {
            return .failure(
                TrebuchetError(.invalidArguments, "that call had another target or other arguments"))
        }
        return call.answer ?? .failure(hadBegun)
    }

    /// The error for calls without a record.
    static var ofEarlierServer: TrebuchetError {
        TrebuchetError(
            .unknownOutcome,
            "the call was sent to an earlier server process, and its outcome is unknown: check "
                + "its effects, and call again if it was not executed")
    }

    private static var hadBegun: TrebuchetError {
        TrebuchetError(
            .unknownOutcome,
            "the call had started but had no response when its server ended: its changes may be partly persisted; check "
                + "its effects")
    }
}

internal import Bytes
internal import Platform
internal import TrebuchetActors
internal import TrebuchetWire

/// Calls that were sent to a server that was here before this one, over the same store: it has noted those that changed something
/// there.
extension ServerConnection {
    /// Whether a repeat is of a call that was sent to another server, which may have been an earlier process of this one.
    func isOfEarlierServer(_ message: borrowing Message) -> Bool {
        named(message.text(message.envelope.pointee.session)) == nil && writer(for: message) != nil
    }

    /// What writes the states of the actor that a message is for; nil where they are not persisted.
    private func writer(for message: borrowing Message) -> StateWriter? {
        isPlaced(ActorName(message.actorName)) ? shard.placedWriter : shard.stateWriter
    }

    /// Answers what the store has of it. It never runs here: what has left no trace may have run all the same.
    func repeatEarlierCall(_ message: borrowing Message) {
        guard let writer = writer(for: message), let number = number(of: message) else {
            return fail(
                message, TrebuchetError(.invalidArguments, "the callID of a call with a session is a number"))
        }
        let (record, _, refusal) = repeatedPlace(of: message, for: nil)
        if let refusal { return fail(message, refusal) }
        let session = message.text(message.envelope.pointee.session)
        // No other server gives such a name, and a store is not to look for it.
        guard session.utf8.count <= ConnectionNames.longest, let parts = SessionName(session),
            parts.instance != shard.answers.names.instance
        else { return fail(message, Self.ofEarlierServer) }
        guard let call = begin(message) else { return }
        call.repeated = RunningCall.RepeatedCall(actor: ActorName(message.actorName), home: record?.home)
        // Of a call that changes an actor which its node alone may write, no trace means that it changed nothing and never will.
        let runsAgain = isPlaced(ActorName(message.actorName))
        lookUp(message, session, number, writer, call) { answer, kept in
            guard answer == nil, runsAgain else {
                return self.deliver(answer ?? .failure(Self.ofEarlierServer), to: call)
            }
            self.withdraw(call)
            self.continuing(call) { kept.withMessage { self.runAgain($0, session, number) } }
        }
    }

    /// Whether an actor lives on one node of several.
    func isPlaced(_ name: ActorName) -> Bool {
        shard.parts.nodes != nil && shard.directory.placedType(of: name) != nil
    }

    /// What the store has of a call; nil when that is nothing. Not answered when the call was, meanwhile. A store that is out of reach is
    /// asked again until the time of the call is over, and another node goes on with it that owns its actor by then.
    func lookUp(
        _ message: borrowing Message, _ session: String, _ number: UInt64, _ writer: StateWriter, _ call: RunningCall,
        _ body: @escaping (KeptAnswer?, KeptMessage) -> Void
    ) {
        let key = CallNamespace.key(session, number, of: message.actorName)
        let digest = digest(of: message)
        let principal = caller?.principal?.name
        let (reactor, kept) = (shard.reactor, KeptMessage(message))
        nonisolated(unsafe) let body = body  // Called on the reactor that gave it alone.
        let name = ActorName(message.actorName)
        call.isAtWork = true
        // On the reactor, as what writes there: a store that only hands the work on costs no other thread.
        Task.immediate(executorPreference: reactor.taskExecutor) {
            var answer: KeptAnswer?
            var mayBeReadLater = false
            do throws(StateStoreError) {
                answer = try await writer.store.get(key).map { Self.answer($0, digest, principal) }
            } catch {
                mayBeReadLater = error.code == .unavailable || error.code == .conflict
                let text = "what became of the call cannot be read: \(error.message)"
                // Who asks again cannot take it for one that was not made.
                answer = .failure(TrebuchetError(.unknownOutcome, text))
            }
            let (found, isLater) = (answer, mayBeReadLater && self.isPlaced(name))
            reactor.execute {
                self.didWork(call)
                guard self.isOpen, !call.isAnswered else { return }
                guard isLater else { return body(found, kept) }
                self.shard.reactor.schedule(after: ConnectionRelays.pause) {
                    guard self.isOpen, !call.isAnswered else { return }
                    kept.withMessage { message in
                        guard case .elsewhere = self.place(of: message) else {
                            return self.lookUp(message, session, number, writer, call, body)
                        }
                        self.withdraw(call)
                        self.continuing(call) { self.repeatAgain(message) }
                    }
                }
            }
        }
    }

    /// Runs a call that another node may have been asked for, and did not do: under the name that it has there, so that it is recognised
    /// should it still come. Nobody has that name any more when the call is not begun.
    private func runAgain(_ message: borrowing Message, _ session: String, _ number: UInt64) {
        let carried = shard.answers.names.carry(session, onReactor: shard.index)
        repeatCall(
            RememberedAnswers.Memory.Name(connection: carried.name, number: number, carried: carried), message,
            hasLookedUp: true)
    }

    /// Whether a call of a connection of another node's may have run here, and nothing is kept of it any more.
    func mayBeForgotten(_ number: UInt64, _ message: borrowing Message, of party: Party) -> Bool {
        guard message.kind == .repeat, shard.parts.nodes != nil,
            let session = SessionName(message.text(message.envelope.pointee.session)),
            session.instance != shard.answers.names.instance
        else { return false }
        return shard.answers.names.carried.mayHaveRun(number, over: session, of: party)
    }

    private static func answer(_ stored: [UInt8], _ digest: UInt64, _ principal: PrincipalName?) -> KeptAnswer {
        guard let call = try? StoredCall(stored) else { return .failure(ofEarlierServer) }
        // Nobody gets what was an answer for somebody else.
        guard call.principal.map({ PrincipalName($0) }) == principal else { return .failure(ofEarlierServer) }
        guard call.digest == digest else {
            return .failure(
                TrebuchetError(.invalidArguments, "that call was another one: other target or arguments"))
        }
        return call.answer ?? .failure(hadBegun)
    }

    /// What a server says of calls of which it has no trace.
    static var ofEarlierServer: TrebuchetError {
        TrebuchetError(
            .unknownOutcome,
            "the call was sent to a server that was here before this one, which cannot know whether it ran: look at what "
                + "it would have changed, and call again if it has not")
    }

    private static var hadBegun: TrebuchetError {
        TrebuchetError(
            .unknownOutcome,
            "the call had begun and was not answered when its server ended: a part of what it changes may be kept; look at "
                + "what it would have changed")
    }
}

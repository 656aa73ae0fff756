internal import Bytes
internal import Networking
internal import Platform
internal import Transports
internal import TrebuchetActors
internal import TrebuchetWire

/// The calls of `@Idempotent` methods of one connection, from the first one on. Their responses are recorded, and they run at most
/// once. A call continues when its connection ends, and the client receives the response over the next connection. On the reactor of the
/// connection.
final class IdempotentCalls: Sendable {
    /// The connection, which releases this object when it closes.
    private let connection: ServerConnection
    /// The quota of its persisted responses, from the first one on.
    private let persistedResponses: LoopVariable<PersistedResponseQuota?>

    init(_ connection: ServerConnection) {
        self.connection = connection
        persistedResponses = LoopVariable(nil, on: connection.shard.reactor)
    }

    // MARK: The first time

    /// Calls an `@Idempotent` method for a client that may repeat the call. Authorization and arguments have been checked.
    func callOnce(_ method: ActorMethod, of record: ActorRecord?, _ message: borrowing Message) {
        guard let name = callName(message), let call = connection.registerCall(message, isPermitted: true) else {
            return
        }
        connection.shard.observer.beginCall(call, method, of: record?.type, message, by: connection.peer)
        let isClustered = connection.isClustered(ActorName(message.actorName))
        callOnce(name, request(message, isRepeat: false), method, of: record, message, call, isClustered: isClustered)
    }

    private func callOnce(
        _ name: ServerIdempotencyCache.Memory.Name, _ request: ServerIdempotencyCache.Memory.Request,
        _ method: ActorMethod, of record: ActorRecord?, _ message: borrowing Message, _ call: InFlightCall,
        isClustered: Bool, hasLookedUp: Bool = false
    ) {
        if !request.isRepeat { connection.recordsResponses = true }
        let shard = connection.shard
        // Outlives the connection, and refers to none of its bytes.
        let execution = IdempotentExecution(name, persistedRecord(of: name, request, message), at: shard)
        let run = InFlightCall(of: call, execution)
        call.awaitExecution(run, isClustered ? OwnedMessage(message) : nil)
        let waiting = DuplicateCallWaiter(connection: connection, call: call, execution: run)
        if let outcome = shard.idempotencyCache.recordCall(name, request, waiting, at: shard.reactor.now) {
            return handleOutcome(outcome, call)
        }
        if request.isRepeat, message.wasSentBefore { shard.counts.count(.repeatsRun) }
        // A separate timer: the call of the connection may end earlier.
        run.timer = shard.reactor.schedule(at: run.deadline) {
            run.cancel()
            execution.recordResponse(of: run, .failure(IdempotentExecution.late))
        }
        let start = CallStart(method: method, call: run, connection: connection) { outcome in
            if isClustered, case .failure(let error) = outcome {
                if ActorMoved.isIt(error) { return shard.reactor.run { execution.beginAgain(run) } }
                if ActorMoved.mayHaveBegun(error) { return shard.reactor.run { execution.repeatElsewhere(run) } }
                if error is PriorExecution {
                    return shard.reactor.run {
                        if !hasLookedUp { return execution.lookUpPriorExecution(run) }
                        // The log has no record either by now.
                        execution.recordResponse(of: run, .failure(ServerIdempotencyCache.Memory.forgotten))
                    }
                }
            }
            if run.home != nil, shard.reactor.isCurrent { return execution.recordResponse(of: run, outcome) }
            shard.deliver(from: run.home) { execution.recordResponse(of: run, outcome) }
        }
        start.start(at: record, message)
    }

    /// Returns the record of a call for the store; nil where no states are persisted.
    private func persistedRecord(
        of name: ServerIdempotencyCache.Memory.Name, _ request: ServerIdempotencyCache.Memory.Request,
        _ message: borrowing Message
    ) -> IdempotencyRecord? {
        guard connection.shard.persistsStates else { return nil }
        let session = message.text(message.envelope.pointee.session)
        return IdempotencyRecord(
            IdempotencyNamespace.key(session, name.number, of: message.actorName), digest: request.digest,
            principal: request.principal, in: persistedResponseQuota(of: name.connection, request))
    }

    /// Returns the quota of the persisted responses of a session. A connection keeps that of its session: each lookup takes locks that all
    /// reactors share.
    func persistedResponseQuota(
        of session: CallSessionID, _ request: ServerIdempotencyCache.Memory.Request
    ) -> PersistedResponseQuota {
        guard session == connection.name else {
            return connection.shard.idempotencyCache.persistedResponseQuota(of: session, request)
        }
        if let known = persistedResponses.value, known.belongs(to: request) { return known }
        let quota = connection.shard.idempotencyCache.persistedResponseQuota(of: session, request)
        persistedResponses.value = quota
        return quota
    }

    // MARK: Again

    /// Handles a call that was sent over an earlier connection and not answered.
    func receiveRepeat(_ message: borrowing Message) {
        guard connection.hasName(message), !connection.refusesIdempotencyKey(message) else { return }
        if case .elsewhere(let type) = connection.location(of: message) { return connection.forward(type, message) }
        if isIntercepted(message) { return }
        if isOfEarlierServer(message) { return repeatEarlierCall(message) }
        guard let name = callName(message) else { return }
        guard name.connection != connection.name else { return repeatCall(name, message) }
        // The client has left that connection. It is closed here before the repeat is handled, so that none of its unread calls is
        // executed later.
        let principal = connection.callerConnection?.principal?.name
        let index = connection.shard.idempotencyCache.names.reactor(of: name.connection)
        guard index < connection.shard.siblings.count else { return }
        let old = connection.shard.siblings[index]
        if old === connection.shard {
            old.closeSession(name.connection, of: principal)
            return repeatCall(name, message)
        }
        // The waiting repeat counts as a running call. A stopping server does not answer it: the call may have run.
        guard let call = connection.registerCall(message, isPermitted: false) else { return }
        call.repeated = originalCall(of: message, home: nil)
        let (owned, wasCounted) = (OwnedMessage(message), connection.isCounted)
        old.reactor.execute { [connection] in
            old.closeSession(name.connection, of: principal)
            connection.shard.reactor.execute {
                guard connection.isOpen, !call.isAnswered else { return }
                owned.withMessage { message in
                    if let refusal = connection.authorization.refusalOfReplacedPrincipal(call) {
                        return self.refuse(call, message, refusal)
                    }
                    guard wasCounted else { return self.repeatCall(name, message, call) }
                    connection.withoutCounting { self.repeatCall(name, message, call) }
                }
            }
        }
    }

    /// - Parameter hasLookedUp: True if the store is known to have no record.
    func repeatCall(
        _ name: ServerIdempotencyCache.Memory.Name, _ message: borrowing Message, hasLookedUp: Bool = false
    ) {
        guard let call = connection.registerCall(message, isPermitted: false) else { return }
        repeatCall(name, message, call, hasLookedUp: hasLookedUp)
    }

    /// Handles a repeat after the end of the first connection, whose calls have either started or never will.
    private func repeatCall(
        _ name: ServerIdempotencyCache.Memory.Name, _ message: borrowing Message, _ call: InFlightCall,
        hasLookedUp: Bool = false
    ) {
        let (record, target, refusal) = repeatedPlace(of: message, for: call)
        if let refusal { return refuse(call, message, refusal) }
        let isRepeat = name.connection != connection.name
        if isRepeat || connection.isCounted { call.repeated = originalCall(of: message, home: record?.home) }
        let waiting = DuplicateCallWaiter(connection: connection, call: call, execution: nil)
        let now = connection.shard.reactor.now
        let request = request(message, isRepeat: isRepeat)
        // The call may have run at the actor's previous owner. A record of that server outranks an expired entry here.
        let isClustered = connection.isClustered(ActorName(message.actorName))
        let writer = hasLookedUp || !isClustered ? nil : connection.shard.clusteredWriter
        switch connection.shard.idempotencyCache.join(name, request, waiting, at: now) {
        case nil: break
        case .forgotten?:
            if let writer { return lookUp(name, request, message, writer, call) }
            connection.shard.observer.didReject(message, ServerIdempotencyCache.Memory.forgotten, by: connection.peer)
            return handleOutcome(.forgotten, call)
        case .waits(let first, let dropped)?:
            if isClustered, let run = first.execution { call.awaitExecution(run, OwnedMessage(message)) }
            return handleOutcome(.waits(first: first, dropped: dropped), call)
        case .refused(let error)?:
            connection.shard.observer.didReject(message, error, by: connection.peer)
            return handleOutcome(.refused(error), call)
        case let outcome?: return handleOutcome(outcome, call)
        }
        guard let target else { return refuse(call, message, CallRejection.actorNotFound.error(of: nil, nil, message)) }
        guard case .method(let unmanaged) = target, unmanaged._withUnsafeGuaranteedRef({ $0.isIdempotent }) else {
            return refuse(call, message, Self.notIdempotent(target, message))
        }
        let method = unmanaged.takeUnretainedValue()
        guard connection.hasCounts(method, message) else {
            let hasArguments = message.envelope.pointee.arguments.count == method.arguments
            let rejection: CallRejection = hasArguments ? .genericCount : .argumentCount
            return refuse(call, message, rejection.error(of: method, nil, message))
        }
        if let writer { return lookUp(name, request, message, writer, call) }
        if mayBeForgotten(name.number, message, of: request.scope) {
            return refuse(call, message, ServerIdempotencyCache.Memory.forgotten)
        }
        connection.shard.observer.beginCall(call, method, of: record?.type, message, by: connection.peer)
        callOnce(
            name, request, method, of: record, message, call, isClustered: isClustered, hasLookedUp: hasLookedUp)
    }

    /// Answers a call from the store, or continues without a record.
    private func lookUp(
        _ name: ServerIdempotencyCache.Memory.Name, _ request: ServerIdempotencyCache.Memory.Request,
        _ message: borrowing Message, _ writer: StateWriter, _ call: InFlightCall
    ) {
        let session = message.text(message.envelope.pointee.session)
        lookUp(message, request.digest, session, name.number, writer, call) { [connection] answer, owned in
            if let answer {
                connection.shard.counts.count(.repeatsAnswered)
                return self.deliver(answer, to: call)
            }
            connection.continueAgain(call) {
                connection.withoutCounting { owned.withMessage { self.repeatCall(name, $0, hasLookedUp: true) } }
            }
        }
    }

    // MARK: Parts

    /// Returns whether interceptors refuse a repeat or run around it in a task.
    private func isIntercepted(_ message: borrowing Message) -> Bool {
        guard connection.shard.interceptors != nil, let type = connection.location(of: message).type,
            case .method(let method) = type.target(message.target)
        else { return false }
        return method._withUnsafeGuaranteedRef { connection.isIntercepted(message, $0.name, $0, of: type) }
    }

    /// Returns the actor and the target of a repeated call, and the reason to refuse it.
    ///
    /// - Parameter call: The repeat's own call.
    private func repeatedPlace(
        of message: borrowing Message, for call: InFlightCall?
    ) -> (ActorRecord?, ActorType.Target?, refusal: TrebuchetError?) {
        let (record, type): (ActorRecord?, ActorType?) =
            switch connection.location(of: message) {
            case .ready(let record): (record, record.type)
            case .inactive(let type), .elsewhere(let type): (nil, type)
            case .unknown: (nil, nil)
            }
        let target = type?.target(message.target)
        let name = target?.name ?? message.target
        guard connection.isGuarded(name) else { return (record, target, nil) }
        return (record, target, connection.refusal(of: name, message.actorName, for: call))
    }

    /// Distinguishes a repeat from another call with the same name. A client that reuses a name for another call affects only
    /// itself.
    ///
    /// Names are hashed by their decoded value, since servers that repeat calls write them again. Arguments are hashed as received,
    /// since every repeat keeps their bytes.
    private func digest(of message: borrowing Message) -> UInt64 {
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

    private func deliver(_ response: ServerIdempotencyCache.Memory.Response, to call: InFlightCall) {
        DuplicateCallWaiter(connection: connection, call: call, execution: nil).deliver(response)
    }

    private func handleOutcome(_ outcome: ServerIdempotencyCache.Memory.Outcome, _ call: InFlightCall) {
        if call.repeated != nil { count(outcome) }
        switch outcome {
        case .waits(let first, let dropped):
            if let run = first.execution { call.awaitExecution(run, call.message) }
            guard let dropped else { return }
            dropped.deliver(.failure(ServerIdempotencyCache.Memory.dropped))
        case .answered(let answer): deliver(answer, to: call)
        case .refused(let error):
            deliver(.failure(call.repeated?.wasSentBefore == true ? error.ofSentCall : error), to: call)
        case .exceeded(let exceeded):
            let error = connection.shard.context.quotas.refusal(exceeded)
            deliver(.failure(call.repeated?.wasSentBefore == true ? error.ofSentCall : error), to: call)
        case .forgotten: deliver(.failure(ServerIdempotencyCache.Memory.forgotten), to: call)
        }
    }

    /// Returns the name of the current call; nil after a refusal.
    private func callName(_ message: borrowing Message) -> ServerIdempotencyCache.Memory.Name? {
        guard let number = connection.number(of: message) else {
            connection.fail(
                message, TrebuchetError(.invalidArguments, "the callID of a call with a session is a number"))
            return nil
        }
        let isRepeat = message.kind == .repeat
        let text = message.text(message.envelope.pointee.session)
        var found = named(text)
        if found == nil { found = derivedSession(message) }
        guard let (session, carried) = found else {
            let error =
                isRepeat
                ? Self.ofEarlierServer
                : TrebuchetError(.invalidArguments, "'session' is not known to this server")
            connection.fail(message, error)
            return nil
        }
        guard isRepeat || session == connection.name else {
            let text = "'session' belongs to another connection; send its calls as 'repeat'"
            connection.fail(message, TrebuchetError(.invalidArguments, text))
            return nil
        }
        return ServerIdempotencyCache.Memory.Name(connection: session, number: number, carried: carried)
    }

    /// Returns the connection with the name in a message; nil for an unknown one.
    private func named(_ text: String) -> (CallSessionID, RemoteSessionAlias?)? {
        if let carried = connection.upstream?.alias, carried.session.isSameBytes(as: text) {
            return (carried.name, carried)
        }
        if let name = connection.shard.idempotencyCache.names.name(text, own: connection.name) { return (name, nil) }
        return connection.shard.idempotencyCache.names.carried.name(text).map { ($0.name, $0) }
    }

    /// Returns the session of a call with an idempotency key, which exists from the first call on.
    private func derivedSession(_ message: borrowing Message) -> (CallSessionID, RemoteSessionAlias?)? {
        guard message.kind == .repeat, message.hasIdempotencyKey else { return nil }
        let carried = connection.shard.idempotencyCache.names.carry(
            message.text(message.envelope.pointee.session), onReactor: connection.shard.index, isVerified: false)
        return (carried.name, carried)
    }

    private func originalCall(of message: borrowing Message, home: SystemShard?) -> InFlightCall.OriginalCall {
        InFlightCall.OriginalCall(
            actor: ActorName(message.actorName), home: home, wasSentBefore: message.wasSentBefore)
    }

    /// Returns the error for the repeat of a call whose responses are not recorded.
    private static func notIdempotent(_ target: ActorType.Target, _ message: borrowing Message) -> TrebuchetError {
        let name = "'\(target.name.prefix(bytes: 128))'"
        guard message.hasIdempotencyKey else {
            return TrebuchetError(.unknownOutcome, "\(name) is not marked @Idempotent at this server: it may have run")
        }
        if case .unknown = target { return CallRejection.methodNotFound.error(of: nil, nil, message) }
        return TrebuchetError(
            .invalidArguments,
            "\(name) is not marked @Idempotent; send the call without \(IdempotencyKey.field)")
    }

    /// Refuses a call that was recorded in `running`.
    private func refuse(_ call: InFlightCall, _ message: borrowing Message, _ error: TrebuchetError) {
        let error = connection.refusal(error, of: message)
        connection.shard.observer.didReject(message, error, by: connection.peer)
        connection.finish(call, .failure(error))
    }

    private func request(
        _ message: borrowing Message, isRepeat: Bool
    ) -> ServerIdempotencyCache.Memory.Request {
        ServerIdempotencyCache.Memory.Request(
            digest: digest(of: message), principal: connection.callerConnection?.principal?.id, isRepeat: isRepeat,
            host: connection.link.host, isOfServer: connection.isServer)
    }

    // MARK: Calls of earlier servers

    // The store has the calls that changed persisted states.

    /// Returns whether a repeat is of a call to another server, possibly an earlier process of this one.
    private func isOfEarlierServer(_ message: borrowing Message) -> Bool {
        named(message.text(message.envelope.pointee.session)) == nil && writer(for: message) != nil
    }

    /// Returns the writer of the states of a message's actor; nil where they are not persisted.
    private func writer(for message: borrowing Message) -> StateWriter? {
        connection.isClustered(ActorName(message.actorName))
            ? connection.shard.clusteredWriter : connection.shard.stateWriter
    }

    /// Answers a repeat from the store. The call never runs here: it may have run without a record.
    private func repeatEarlierCall(_ message: borrowing Message) {
        guard let writer = writer(for: message), let number = connection.number(of: message) else {
            return connection.fail(
                message, TrebuchetError(.invalidArguments, "the callID of a call with a session is a number"))
        }
        let (record, _, refusal) = repeatedPlace(of: message, for: nil)
        if let refusal { return connection.fail(message, refusal) }
        let session = message.text(message.envelope.pointee.session)
        // Every server limits its names to this length; longer ones need no store access.
        guard session.utf8.count <= CallSessionRegistry.longest, let parts = QualifiedCallSessionID(session),
            parts.instance != connection.shard.idempotencyCache.names.instance
        else { return connection.fail(message, Self.ofEarlierServer) }
        guard let call = connection.registerCall(message, isPermitted: true) else { return }
        call.repeated = originalCall(of: message, home: record?.home)
        // If only its server may write the actor, a call without a record has changed nothing and never will. A call with an idempotency
        // key may be the first one.
        let runsAgain = connection.isClustered(ActorName(message.actorName)) || message.hasIdempotencyKey
        lookUp(message, digest(of: message), session, number, writer, call) { [connection] answer, owned in
            guard answer == nil, runsAgain else {
                return self.deliver(answer ?? .failure(Self.ofEarlierServer), to: call)
            }
            connection.continueAgain(call) {
                connection.withoutCounting { owned.withMessage { self.rerunCall($0, session, number) } }
            }
        }
    }

    /// Looks a call up in the store; passes nil to `body` when the store has no record. Does not call `body` when the call was
    /// answered meanwhile. Retries an unreachable store until the call's deadline; another server continues if it owns the actor by
    /// then.
    private func lookUp(
        _ message: borrowing Message, _ digest: UInt64, _ session: String, _ number: UInt64, _ writer: StateWriter,
        _ call: InFlightCall, _ body: @escaping (RecordedResponse?, OwnedMessage) -> Void
    ) {
        let key = IdempotencyNamespace.key(session, number, of: message.actorName)
        let principal = connection.callerConnection?.principal?.name
        let (reactor, owned) = (connection.shard.reactor, OwnedMessage(message))
        nonisolated(unsafe) let body = body  // Called only on the reactor that passed it.
        let name = ActorName(message.actorName)
        call.beginStoreRead()
        // Runs on the reactor, as writes do: a store that only forwards the work then uses no other thread.
        Task.immediate(executorPreference: reactor.taskExecutor) { [connection] in
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
            let (found, isLater) = (answer, mayBeReadLater && connection.isClustered(name))
            reactor.execute {
                connection.didWork(call)
                guard connection.isOpen, !call.isAnswered else { return }
                guard isLater else { return body(found, owned) }
                connection.shard.reactor.schedule(after: ServerConnection.retryPause) {
                    guard connection.isOpen, !call.isAnswered else { return }
                    owned.withMessage { message in
                        guard case .elsewhere = connection.location(of: message) else {
                            return self.lookUp(message, digest, session, number, writer, call, body)
                        }
                        connection.continueAgain(call) { owned.withMessage { connection.repeatCall($0) } }
                    }
                }
            }
        }
    }

    /// Runs a call that another server may have received and did not execute. It keeps its name of that server, so that it is recognized
    /// should it still arrive. The name is unused if the call does not start.
    private func rerunCall(_ message: borrowing Message, _ session: String, _ number: UInt64) {
        let carried = connection.shard.idempotencyCache.names.carry(
            session, onReactor: connection.shard.index, isVerified: false)
        repeatCall(
            ServerIdempotencyCache.Memory.Name(connection: carried.name, number: number, carried: carried), message,
            hasLookedUp: true)
    }

    /// Returns whether a call of another server's connection may have run here and its record is no longer kept.
    private func mayBeForgotten(_ number: UInt64, _ message: borrowing Message, of scope: QuotaScope) -> Bool {
        guard message.wasSentBefore, connection.shard.context.router != nil,
            let session = QualifiedCallSessionID(message.text(message.envelope.pointee.session)),
            session.instance != connection.shard.idempotencyCache.names.instance
        else { return false }
        return connection.shard.idempotencyCache.names.carried.mayHaveRun(number, over: session, of: scope)
    }

    private static func answer(_ stored: [UInt8], _ digest: UInt64, _ principal: PrincipalName?) -> RecordedResponse {
        guard let call = try? PersistedIdempotencyRecord(stored) else { return .failure(ofEarlierServer) }
        // A response is delivered only to the principal of the call.
        guard call.principal.map({ PrincipalName($0) }) == principal else { return .failure(ofEarlierServer) }
        guard call.digest == digest else {
            return .failure(
                TrebuchetError(.invalidArguments, "the call with this number had another target or other arguments"))
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

    private func count(_ outcome: ServerIdempotencyCache.Memory.Outcome) {
        let metric: Metric =
            switch outcome {
            case .waits: .repeatsJoined
            case .answered: .repeatsAnswered
            case .refused, .exceeded: .repeatsRefused
            case .forgotten: .repeatsForgotten
            }
        connection.shard.counts.count(metric)
    }
}

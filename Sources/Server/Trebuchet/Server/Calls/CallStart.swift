internal import Networking
internal import TrebuchetActors
internal import TrebuchetWire

/// The start of an in-flight call: the activation of its actor if necessary, then the call of the method on the actor's reactor.
/// Isolated to the reactor of the connection.
struct CallStart {
    let method: ActorMethod
    let call: InFlightCall
    /// The connection, also after it is closed: an execution of an `@Idempotent` call outlives it.
    let connection: ServerConnection
    /// Called on the thread where the call ends.
    let completion: CallCompletion

    private var shard: ServerShard { connection.shard }

    /// - Parameter record: nil if the actor is not active.
    func start(at record: ActorRecord?, _ message: borrowing Message) {
        if let record { return run(at: record, message) }
        awaitActor(message.actorName, OwnedMessage(message))
    }

    /// Activates the actor, then calls the method.
    func awaitActor(_ name: String, _ owned: OwnedMessage) {
        let waiter = shard.awaitActor(ActorName(name), for: connection.scopes, byteCount: owned.byteCount) { outcome in
            guard call.endActivationWait() else { return }
            switch outcome {
            case .failure(let error):
                if ActorMoved.isIt(error), connection.calls[call.callID] === call {
                    return connection.continueAgain(call, owned)
                }
                refuse(owned, error)
            case .success(let record):
                guard let method = method.resolved(in: record.type) else {
                    return refuse(owned, TrebuchetError(.methodNotFound, "the actor has been replaced"))
                }
                if let refusal = connection.authorization.refusalAfterWait(of: method.name, record.name, call) {
                    return refuse(owned, refusal)
                }
                if record.isClustered { call.activatedActor = ActorName(record.name) }
                let resolved = CallStart(method: method, call: call, connection: connection, completion: completion)
                owned.withMessage { resolved.run(at: record, $0) }
            }
        }
        call.awaitActivation(waiter)
    }

    /// Ends a call that has waited and does not start. The record of an execution is withdrawn, so that a repeat may start.
    private func refuse(_ owned: OwnedMessage, _ error: any Error) {
        let refusal = owned.withMessage { connection.refusal(error, of: $0) }
        // A call whose actor has moved waits for its next owner.
        guard let execution = call.execution, !ActorMoved.isIt(refusal) else { return completion(.failure(refusal)) }
        execution.withdraw(call, refusal)
    }

    private func run(at record: ActorRecord, _ message: borrowing Message) {
        if let recorded = call.execution?.record, record.persisted?.earlier.contains(recorded) == true {
            return completion(.failure(PriorExecution()))
        }
        call.home = record.home
        if let home = record.home, home !== shard.states { return send(to: home, record, message) }
        call.beginWork()
        ServerConnection.withCaller(call.caller, connection.clientActorHost) {
            if !shard.run(method, of: record, message, call, completion) {
                _ = call.endWork()
                awaitActor(record.name, OwnedMessage(message))
            }
        }
    }

    /// Calls the method on another reactor.
    private func send(to home: SystemShard, _ record: ActorRecord, _ message: borrowing Message) {
        guard let there = shard.sibling(on: home) else {
            return completion(.failure(TrebuchetError(.unavailable, "the server has shut down")))
        }
        // Only the bytes cross; the other reactor scans them again, which costs less than a transfer of the scan result.
        let bytes = Array(message.bytes)
        let hosting = connection.clientActorHost
        let queue = connection.requireCrossReactorCalls().queue(to: there.reactor)
        if call.isInTransit { call.crossReactorQueue = queue }
        call.beginWork()
        queue.enqueue(bytes: bytes.count) {
            // The call may have been queued for long. A method that suspends checks for cancellation itself.
            if method.runsInPlace, call.isCancelled { return completion(.failure(CancellationError())) }
            let isThere = ServerConnection.withCaller(call.caller, hosting) {
                there.withMessage(bytes) { there.run(method, of: record, $0, call, completion) }
            }
            guard isThere != true else { return }
            // The actor has been deactivated meanwhile. This reactor receives that notice before the closure below.
            shard.reactor.execute {
                connection.didWork(call)
                guard !call.isAnswered else { return }
                guard let owned = shard.withMessage(bytes, { OwnedMessage($0) }) else {
                    return completion(.failure(TrebuchetError(.internal, "too many messages at once")))
                }
                awaitActor(record.name, owned)
            }
        }
    }
}

extension ActorMethod {
    /// Returns the same method of the activated actor, whose type may differ by then.
    fileprivate func resolved(in type: ActorType) -> ActorMethod? {
        guard case .method(let found) = type.target(name) else { return nil }
        let method = found.takeUnretainedValue()
        return method.arguments == arguments && method.generics == generics ? method : nil
    }
}

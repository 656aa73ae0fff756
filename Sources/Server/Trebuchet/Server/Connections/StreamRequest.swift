internal import Networking
internal import TrebuchetActors
internal import TrebuchetWire

/// A request to start a stream: from the message of the client, or of its server, until the stream has started or was refused. It may wait
/// for the activation of its actor, as an in-flight call, and for the reactor of the actor.
///
/// Its functions are isolated to the reactor of the connection.
package final class StreamRequest: Sendable {
    let connection: ServerConnection
    let name: RequestedStream
    package let streamID: [UInt8]
    let callID: [UInt8]
    let filter: StreamFilter?
    /// The client's version of a stream that it resumes; nil for a new stream.
    let seen: ResumePosition?
    /// Its reservation, until it has started.
    let reservation: StreamReservation
    /// Indicates whether only permission is requested: the client's server observes the stream for several clients.
    private let mayShare: Bool
    /// Indicates whether the stream is new to its client, although its position is known.
    private let isFirst: Bool
    /// The client's message, if it may have to go to another server after all.
    private let message: OwnedMessage?

    init(
        _ name: RequestedStream, streamID: [UInt8], callID: [UInt8], filter: StreamFilter?, seen: ResumePosition?,
        reservation: StreamReservation, mayShare: Bool = false, isFirst: Bool = false, message: OwnedMessage? = nil,
        on connection: ServerConnection
    ) {
        (self.connection, self.name, self.streamID, self.callID) = (connection, name, streamID, callID)
        (self.filter, self.seen, self.reservation) = (filter, seen, reservation)
        (self.mayShare, self.isFirst, self.message) = (mayShare, isFirst, message)
    }

    /// Creates a request for a shared stream, which the owner of its actor has permitted.
    package convenience init(
        shared name: RequestedStream, streamID: [UInt8], callID: [UInt8], seen: ResumePosition,
        reservation: StreamReservation, isFirst: Bool, on connection: ServerConnection
    ) {
        self.init(
            name, streamID: streamID, callID: callID, filter: nil, seen: seen, reservation: reservation,
            isFirst: isFirst, on: connection)
    }

    /// A version of a stream that its client has received.
    package struct ResumePosition: Sendable {
        package let epoch: String
        package let sequence: UInt64

        package init(epoch: String, sequence: UInt64) { (self.epoch, self.sequence) = (epoch, sequence) }
    }

    private var shard: ServerShard { connection.shard }

    /// Its key among the connection's calls while it waits. For a stream that its server resumes, it is a key that no client can
    /// use.
    var key: [UInt8] { name.knownAs.map(Self.key) ?? callID }

    /// Returns the key of a stream that its server resumes.
    static func key(of knownAs: [UInt8]) -> [UInt8] { [0] + knownAs }

    /// Returns the stream as another server resumes it.
    private func movable(in partition: Int) -> MovableStream {
        MovableStream(
            callID: callID, actor: name.actor.text, target: name.target, filter: filter, partition: partition)
    }

    // MARK: The actor

    /// Activates the actor if necessary, and starts the stream.
    ///
    /// - Parameter record: nil if the actor is not active.
    func start(at record: ActorRecord?, _ message: borrowing Message) {
        if let record {
            shard.continued = nil
            return start(at: record)
        }
        guard let call = connection.registerCall(message, key, isPermitted: true) else { return }
        if waitsForOwner { call.timer?.cancel() }
        awaitActor(call)
    }

    /// Indicates whether the request is a resumption that waits for the owner of its actor, without a time limit.
    private var waitsForOwner: Bool { seen != nil && connection.isClustered(name.actor) }

    /// Waits for the actor as a running call: it counts, has a deadline and can be cancelled.
    private func awaitActor(_ call: InFlightCall) {
        call.stream = name
        if name.knownAs != nil { call.moveStream = { [weak call] in if let call { _ = self.move(call) } } }
        let waiter = shard.awaitActor(name.actor, for: connection.scopes) { outcome in
            guard call.endActivationWait() else { return }
            defer { self.connection.sendReadyResponses() }
            switch outcome {
            case .failure(let error):
                if ActorMoved.isIt(error), self.move(call) { return }
                if self.startsLater(call, error) { return }
                self.connection.finish(call, .failure(error))
            case .success(let record):
                self.connection.withdraw(call)
                self.start(at: record)
            }
        }
        call.awaitActivation(waiter)
    }

    /// Continues at another server, to which its actor has just moved. Returns false if it cannot.
    private func move(_ call: InFlightCall) -> Bool {
        if let message {
            // The next attempt takes a new reservation.
            reservation.release()
            if seen == nil {
                connection.continueAgain(call, message)
            } else {
                // A resumption waits for an owner without a time limit.
                connection.withdraw(call)
                message.withMessage { connection.handleReturned($0) }
            }
            return true
        }
        if connection.upstream != nil {
            connection.withdraw(call)
            return connection.beginsElsewhere(name, callID)
        }
        return resumeElsewhere(call, pauses: false)
    }

    /// Starts a client's stream after a pause: the shared store was unreachable, so its actor could not be loaded. Returns false after
    /// another error.
    private func startsLater(_ call: InFlightCall, _ error: any Error) -> Bool {
        guard connection.upstream == nil, !connection.isDraining, shard.router != nil,
            (error as? TrebuchetError)?.code == .unavailable
        else { return false }
        if resumeElsewhere(call, pauses: true) { return true }
        guard seen != nil else { return false }
        // The call's deadline ends the attempts.
        shard.reactor.schedule(after: ServerConnection.retryPause) {
            if !call.isAnswered, self.connection.isOpen { self.awaitActor(call) }
        }
        return true
    }

    /// Passes a stream that its server resumes to the owner of its actor. Returns false for a stream that the client requests.
    private func resumeElsewhere(_ call: InFlightCall, pauses: Bool) -> Bool {
        guard name.knownAs != nil, let seen, let forwarder = connection.forwarder else { return false }
        connection.withdraw(call)
        forwarder.resume(moving(mayShare: true), at: seen, pauses: pauses)
        return true
    }

    private func moving(mayShare: Bool) -> MovingStream {
        MovingStream(
            stream: movable(in: shard.partition(of: name.actor.text)), streamID: streamID, mayShare: mayShare,
            reservation: reservation)
    }

    private func start(at record: ActorRecord) {
        if connection.isDraining, connection.beginsElsewhere(name, callID) { return }
        if let first = connection.streams.addRequest(self, isOfOtherReactor: record.home !== shard.states) {
            first.abandon()
        }
        guard record.actorInstance.enter() else { return restart(record) }
        record.beginStream(name.target, for: connection.callerConnection) { found in
            let source = try? found.get()
            let outcome = Result { try found.get().map { try self.view(of: $0) } }
            let position = source?.position(retainedFor: self.shard.limits.streams.resumeRetention)
            self.shard.reactor.run {
                self.subscribe(to: outcome, at: position, record)
                record.actorInstance.removeUser()
            }
        }
    }

    /// Returns the source as the filter shows it. Isolated to the state's actor.
    private func view(of source: StreamProducer) throws -> StreamProducer {
        guard let filter else { return source }
        return try source.filtered(
            filter, clock: source.home?.reactor ?? shard.reactor, terms: FilterQuota(shard.limits, connection.scopes))
    }

    /// Starts again after the actor was deactivated meanwhile: it is activated once more.
    private func restart(_ record: ActorRecord) {
        connection.streams.removeRequest(self)
        guard connection.isOpen, !isWithdrawn else { return }
        guard let call = connection.registerCall(waitingAgain: key) else {
            return refuse(TrebuchetError(.unavailable, "the actor was just deactivated; retry"))
        }
        if !waitsForOwner { connection.time(call, within: shard.limits.calls.timeout) }
        awaitActor(call)
    }

    // MARK: The stream

    private func subscribe(
        to outcome: Result<StreamProducer?, any Error>, at position: StreamPosition?, _ record: ActorRecord
    ) {
        connection.streams.removeRequest(self)
        defer { connection.sendReadyResponses() }
        let source: StreamProducer
        switch outcome {
        case .success(let found?): source = found
        case .success(nil): return refuse(record.notFoundError)
        case .failure(let error): return refuse(error)
        }
        // A filter that was created for this stream alone ends with it, whatever the reason.
        var isUsed = false
        defer { if !isUsed { source.endIfUnused() } }
        guard connection.isOpen else { return }
        if let revocation = connection.authorization.revocation(of: record.name) { return refuse(revocation) }
        if isWithdrawn { return }
        if connection.isDraining, connection.beginsElsewhere(name, callID) { return }
        let seen = seen.flatMap { source.canResume(from: $0.sequence, in: $0.epoch) ? $0 : nil }
        // A client that continues from another incarnation must learn of it.
        let isOfEarlierLife = seen.map { !$0.epoch.utf8.elementsEqual(source.epoch.utf8) } ?? false
        if let old = connection.streams[streamID] { connection.removeStream(old) }
        let label = ServerEvent.Stream(actor: name.actor.text, type: record.type.name, target: name.target)
        if self.seen != nil, seen == nil, position != nil {
            // The stream does not start: a client that only learned of the new incarnation would continue without the missed events.
            shard.observer.didStart(label, .eventsMissed, by: connection.peer)
            return refuse(Self.eventsMissed)
        }
        let permission = mayShare && record.isShared ? connection.upstream?.permission : nil
        let first = isOfEarlierLife ? seen?.sequence : position?.number
        reportStart(as: permission ?? streamID, epoch: source.epoch, sequence: first)
        if permission != nil { return }
        // The client resumes it from this position over its next connection.
        if connection.isDraining { return connection.reportDrainedStream(streamID) }
        isUsed = true
        if record.type.isGated { connection.streams.observerChecked[streamID] = name.actor }
        let sent = seen?.sequence ?? position?.number
        let start: ServerEvent.StreamStart = self.seen == nil ? .initial : seen == nil ? .resynchronized : .resumed
        addStream(of: source, label, start, sent: sent, partition: record.isClustered ? record.partition : nil) {
            broadcaster in
            record.executeStreamingTarget(self.name.target) { source in
                // The position keeps the versions until then.
                withExtendedLifetime(position) {
                    if source == nil { broadcaster.send(.ended) } else { broadcaster.producer.attach(broadcaster) }
                }
            }
        }
        if let upstream = connection.upstream, self.seen != nil {
            connection.whenStartedStreamsAreCurrent { [streamID] in upstream.reportCatchUp(of: streamID) }
        }
    }

    /// Adds the stream to those of the connection.
    ///
    /// - Parameters:
    ///   - sent: The last version that the client has received; nil for none.
    ///   - partition: The partition of an actor that may move to another server.
    ///   - attach: Attaches the first broadcaster of this reactor to the source.
    private func addStream(
        of source: StreamProducer, _ label: ServerEvent.Stream, _ start: ServerEvent.StreamStart, sent: UInt64?,
        partition: Int?, attach: (Broadcaster) -> Void
    ) {
        shard.observer.didStart(label, start, by: connection.peer)
        if let partition { connection.streams.movable[streamID] = movable(in: partition) }
        if connection.authorization.isUnderRules { connection.streams.authorized[streamID] = name }
        shard.states.subscribe(to: source, as: label) { broadcaster in
            let subscription = StreamSubscription(
                streamID: streamID, broadcaster: broadcaster, subscriber: connection,
                isFiltered: reservation.isFiltered)
            reservation.transfer()
            if let sent { subscription.markSent(upTo: sent) }
            connection.streams[streamID] = subscription
            return subscription
        } attach: { broadcaster in
            attach(broadcaster)
        }
    }

    private func reportStart(as streamID: [UInt8], epoch: String, sequence: UInt64?) {
        connection.reportStreamStart(
            of: streamID, callID, name.actor.text, name.target, epoch: epoch, sequence: sequence)
    }

    // MARK: The end

    private static var eventsMissed: TrebuchetError {
        TrebuchetError(.overflow, "events were missed: their actor was activated again")
    }

    private func refuse(_ error: any Error) { connection.refuse(name, callID, error) }

    /// Indicates whether the stream must not start any more. The client is notified of the reason then, if there is one.
    private var isWithdrawn: Bool {
        guard reservation.isWithdrawn else { return false }
        if let error = reservation.refusal { refuse(error) }
        return true
    }

    /// Ends a request whose stream name the client has used again. If the client chose both names, it knows; otherwise it waits for
    /// a response.
    private func abandon() {
        let text = "the client resumed another stream under the name of this stream"
        reservation.withdraw(name.resumed == nil ? TrebuchetError(.cancelled, text) : nil)
    }
}

/// Shared streams: this server receives a stream of another server once for all of its clients. For each client it asks the owner
/// for permission to observe; the versions then come from this server.
extension StreamRequest {
    /// Notifies the client of a shared stream that the owner has permitted it to observe, and waits for the stream.
    ///
    /// - Parameter position: The client's position, if it does not start with the current value.
    /// - Returns: False if the client leaves; the stream must not be requested then.
    package func awaitSharedStream(at position: UInt64?) -> Bool {
        reportStart(as: streamID, epoch: seen?.epoch ?? "", sequence: position)
        if connection.isDraining {
            connection.reportDrainedStream(streamID)
            return false
        }
        connection.streams.addRequest(self, isOfOtherReactor: true)
        return true
    }

    /// Starts an awaited shared stream.
    package func start(with answer: SharedStreamOutcome) {
        connection.streams.removeRequest(self)
        defer { connection.sendReadyResponses() }
        guard connection.isOpen, !connection.isDraining, let seen else { return }
        if let revocation = connection.authorization.revocation(of: name.actor.text) {
            return connection.failStream(streamID, revocation)
        }
        if reservation.isWithdrawn {
            if let error = reservation.refusal { connection.failStream(streamID, error) }
            return
        }
        switch answer {
        case .elsewhere: requestAgain(seen, mayShare: true)
        case .failed(let error): connection.failStream(streamID, error)
        case .stream(let replica): observe(replica, from: seen)
        }
    }

    private func requestAgain(_ seen: ResumePosition, mayShare: Bool) {
        connection.forwarder?.resume(moving(mayShare: mayShare), at: seen, pauses: false)
    }

    private func observe(_ replica: RemoteStreamReplica, from seen: ResumePosition) {
        let isResumed = replica.canResume(from: seen.sequence, in: seen.epoch)
        guard isResumed || replica.kind != .events else { return connection.failStream(streamID, Self.eventsMissed) }
        let sent = isResumed ? seen.sequence : 0
        // The owner may have the missing versions: request them for this client alone.
        guard replica.serves(behind: sent) else { return requestAgain(seen, mayShare: false) }
        if !replica.epoch.utf8.elementsEqual(seen.epoch.utf8) {
            reportStart(as: streamID, epoch: replica.epoch, sequence: isResumed ? sent : nil)
        }
        let label = ServerEvent.Stream(
            actor: name.actor.text, type: shard.directory.type(of: name.actor)?.name ?? "other", target: name.target)
        addStream(
            of: replica, label, isFirst ? .initial : isResumed ? .resumed : .resynchronized, sent: sent,
            partition: shard.partition(of: name.actor.text)
        ) { replica.attachBroadcaster($0) }
        // An ended stream may have dropped versions before this subscription, and the response that follows them is in this
        // reactor's queue.
        if replica.hasEnded, let subscription = connection.streams[streamID] {
            let failure = replica.failure
            connection.endStream(subscription, reason: failure == nil ? .actorTerminated : .error, error: failure)
        }
    }
}

extension ActorRecord {
    /// Indicates whether servers share the actor's streams. They do not if the actor checks its observers, or if its changes do not
    /// happen in the order of a reactor's turns.
    fileprivate var isShared: Bool { isClustered && home != nil && !type.isGated }
}

internal import Bytes
internal import Networking
internal import Transports
internal import Trebuchet
internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire

/// A client's calls and streams with actors of other nodes. Messages pass in both directions unchanged except for their callIDs,
/// over one channel for each node. When an actor moves or its node fails, its streams are resumed at the next owner after the
/// versions that the client has. `@Idempotent` calls are repeated there. The client does not notice.
///
/// Isolated to the connection's reactor.
final class RemoteCallForwarder: ConnectionForwarder {
    /// The time for which calls wait for earlier calls at a node that no longer owns their slot. A node that releases a slot waits
    /// as long for its running calls.
    static let longestReturn = Duration.seconds(3)
    /// The longest time for which a response waits for the missing versions of a resumed stream. The owner reports when it has sent
    /// them, which takes seconds over a link that loses packets.
    static let longestCatchingUp = Duration.seconds(10)

    /// The connection, which releases this object when it closes. The reference is strong: a message to the connection may be its
    /// last operation.
    let connection: ServerConnection
    let node: NodeShard
    private(set) var channels: [ClusterNode: OwnerChannel] = [:]
    private var channelCount: UInt64 = 0
    private var callCount: UInt64 = 0
    /// The slots with waiting or in-flight messages.
    private(set) var slots: [ClusterSlot: SlotSendState] = [:]
    /// The streams that the client has at other nodes.
    var streams = ForwardedStreams()
    /// The number of calls postponed until the reactor knows of the latest owners.
    private var postponed = 0
    /// Indicates whether a postponed call is being handled.
    private var isMakingPostponed = false
    /// The error for the client's messages to other nodes: its principal and retained headers do not fit into one node message. Nil if
    /// they fit.
    private(set) var excess: TrebuchetError?

    init(_ connection: ServerConnection, _ node: NodeShard) {
        self.connection = connection
        self.node = node
        let (reactor, reference) = (connection.shard.reactor, weakReference)
        let caller = connection.authorization.caller
        caller?.connection.onPrincipalChange { reactor.run { reference.value.forwarder?.callerDidChange() } }
        if caller?.principal != nil { excess = client().excess }
    }

    private var weakReference: LoopBound<WeakRemoteCallForwarder> {
        LoopBound(WeakRemoteCallForwarder(forwarder: self), on: connection.shard.reactor)
    }

    var shard: ServerShard { connection.shard }
    var isOpen: Bool { connection.isOpen }

    // MARK: Calls and streams begin

    func forward(_ message: borrowing Message, isRepeatable: Bool) {
        forward(message, Array(message.callID), nil, nil, isRepeatable: isRepeatable)
    }

    func forward(
        _ message: borrowing Message, starting requested: RequestedStream, _ filter: StreamFilter?,
        _ reservation: StreamReservation
    ) {
        let envelope = message.envelope
        let callID = envelope.pointee.callID.isAbsent ? requested.resumed ?? [] : Array(message.callID)
        let stream = ForwardedStream(
            callID: callID, actor: requested.actor, target: requested.target, filter: filter,
            epoch: message.text(envelope.pointee.epoch), sequence: envelope.pointee.lastSequence ?? 0,
            mayShare: true, reservation: reservation)
        forward(message, callID, requested, stream, isRepeatable: true)
    }

    private func forward(
        _ message: borrowing Message, _ callID: [UInt8], _ requested: RequestedStream?, _ stream: ForwardedStream?,
        isRepeatable: Bool
    ) {
        guard let call = connection.registerCall(message, callID, isPermitted: true) else { return }
        call.stream = requested
        callCount += 1
        // A message that was at this node before precedes one that has just arrived.
        let order = callCount | (connection.isCounted ? 0 : 1 << 63)
        let relayed = ForwardedCall(
            message, callID: callID, order: order, isRepeatable: isRepeatable, stream: stream, of: self)
        call.forward(relayed)
        let traffic = traffic(of: relayed.slot)
        // Paused resumptions precede it and pause no longer.
        if streams.hasPaused(in: traffic.slot) { endPauses(in: traffic.slot) }
        if node.hasRecentlyMovedActors, traffic.calls.isEmpty, traffic.crossings == 0 { waitForCrossings(traffic) }
        traffic.calls.addCall(relayed, relayed.order)
        proceed(traffic)
    }

    /// Waits for cross-reactor calls to actors that have just left this node: they may return and go first.
    private func waitForCrossings(_ traffic: SlotSendState) {
        let (reference, bound) = (weakReference, LoopBound(traffic, on: shard.reactor))
        traffic.crossings += connection.afterCrossReactorCalls {
            bound.value.crossings -= 1
            reference.value.forwarder?.proceed(bound.value)
        }
    }

    /// Returns the running call of the connection; nil when no party waits for its response.
    func underWay(_ relayed: ForwardedCall) -> InFlightCall? {
        connection.runningCall(relayed.callID).flatMap { $0.forwarded === relayed ? $0 : nil }
    }

    func postpones(_ message: borrowing Message) -> Bool {
        guard !connection.isCounted, !isMakingPostponed, node.hasPendingOwnerChanges || postponed > 0 else {
            return false
        }
        let (connection, owned) = (connection, OwnedMessage(message))
        let (isBound, principal) = (connection.isBound(message), connection.callerConnection?.principal?.name)
        postponed += 1
        shard.reactor.execute {
            guard let forwarder = connection.callForwarder else { return }
            forwarder.postponed -= 1
            guard !isBound || principal == nil || connection.callerConnection?.principal?.name == principal else {
                return owned.withMessage { connection.fail($0, Caller.replacedPrincipal) }
            }
            forwarder.isMakingPostponed = true
            defer { forwarder.isMakingPostponed = false }
            owned.withMessage { connection.handleAgain($0) }
        }
        return true
    }

    // MARK: Queues for an owner

    func traffic(of slot: ClusterSlot) -> SlotSendState {
        if let found = slots[slot] { return found }
        let created = SlotSendState(slot)
        slots[slot] = created
        return created
    }

    /// Sends the slot's waiting messages, as far as their order permits.
    func proceed(_ traffic: SlotSendState) {
        let hasStreams = streams.hasQueued(in: traffic.slot)
        if traffic.isLookingUpOwner, traffic.calls.waiting.isEmpty, !hasStreams { traffic.cancelOwnerLookup() }
        guard isOpen, !traffic.isLookingUpOwner else { return }
        if !hasStreams {
            if traffic.isEmpty {
                if slots[traffic.slot] === traffic { slots[traffic.slot] = nil }
                return
            }
            guard !traffic.calls.waiting.isEmpty, traffic.crossings == 0 else { return }
            if traffic.calls.awaitsResponses { return scheduleCheck(traffic) }
        }
        traffic.isLookingUpOwner = true
        let waiter = node.withOwner(of: traffic.slot) { [weak self] owner in
            (traffic.isLookingUpOwner, traffic.waiter) = (false, nil)
            guard let self, self.isOpen else { return }
            switch owner {
            case .failure(let error): self.fail(traffic, error)
            case .success(let owner):
                self.send(traffic, to: owner)
                self.proceed(traffic)
            }
        }
        if let waiter { traffic.waiter = waiter }
    }

    private func send(_ traffic: SlotSendState, to owner: ClusterNode) {
        let isHere = owner == node.nodes.node
        // This node has just lost the slot, or does not begin new work in it.
        guard !isHere || node.nodes.member.mayStartWork(in: traffic.slot) else {
            return node.forgetOwner(of: traffic.slot, owner)
        }
        // Streams precede all calls, so that they miss few changes of those calls.
        if streams.hasQueued(in: traffic.slot) {
            for streamID in streams.names(in: traffic.slot, .queued) {
                handle(isHere ? .ownerIsHere : .ownerFound(over: channel(to: owner).number), of: streamID)
            }
            removeResumedHere()
        }
        guard traffic.crossings == 0, !traffic.calls.waiting.isEmpty, traffic.calls.maySend(to: owner) else { return }
        for relayed in traffic.calls.removeAll() {
            guard let call = underWay(relayed) else { continue }
            if isHere {
                // The local resumption takes a new reservation.
                _ = relayed.removeStream()
                guard !relayed.isResumption else {
                    connection.withdraw(call)
                    relayed.withMessage { connection.handleReturnedResumption($0) }
                    continue
                }
                connection.continueAgain(call) { relayed.withMessage { connection.handleReturned($0) } }
            } else if let refusal = connection.authorization.revocation(of: relayed.actor)
                ?? connection.authorization.refusalOfReplacedPrincipal(call)
            {
                connection.finish(call, .failure(relayed.refusal(refusal)))
            } else {
                traffic.calls.didSend(relayed.order, to: owner)
                channel(to: owner).sendRequest(relayed)
            }
        }
    }

    /// Retries when `longestReturn` is over, and then waits no longer for calls that are running at the former owner.
    private func scheduleCheck(_ traffic: SlotSendState) {
        guard !traffic.isTimed else { return }
        traffic.isTimed = true
        let round = traffic.calls.round
        shard.reactor.schedule(after: Self.longestReturn) { [weak self] in
            traffic.isTimed = false
            if traffic.calls.round == round { traffic.calls.clearInFlight() }
            self?.proceed(traffic)
        }
    }

    /// Fails the calls of a slot without an owner. Streams are kept until their client disconnects.
    private func fail(_ traffic: SlotSendState, _ error: TrebuchetError) {
        var resumptions: [ForwardedCall] = []
        for relayed in traffic.calls.removeAll() {
            guard let call = underWay(relayed) else { continue }
            if relayed.isResumption {
                resumptions.append(relayed)
            } else {
                connection.finish(call, .failure(relayed.refusal(error)))
            }
        }
        // A resumption waits until the deadline of its request.
        for relayed in resumptions { traffic.calls.addCall(relayed, relayed.order) }
        guard streams.hasQueued(in: traffic.slot) || !resumptions.isEmpty else { return proceed(traffic) }
        shard.reactor.schedule(after: .seconds(1)) { [weak self] in self?.proceed(traffic) }
    }

    private func channel(to owner: ClusterNode) -> OwnerChannel {
        if let channel = channels[owner] { return channel }
        channelCount += 1
        let channel = OwnerChannel(
            self, to: owner, number: channelCount, at: node.nodes.exchange, reactor: shard.reactor)
        channel.open(client())
        channels[owner] = channel
        return channel
    }

    /// Returns the open channel with this number.
    func channel(_ number: ForwardedStream.ChannelNumber) -> OwnerChannel? {
        channels.values.first { $0.number == number }
    }

    /// The description of the client that other nodes receive.
    private func client() -> ForwardedClient {
        ForwardedClient(
            session: connection.session, streams: "\(channelCount).",
            caller: connection.authorization.caller?.connection, largestMessage: Int(connection.largestMessage))
    }

    /// Removes a channel. Returns whether it was in use.
    func removeChannel(_ channel: OwnerChannel) -> Bool {
        guard channels[channel.node] === channel else { return false }
        channels[channel.node] = nil
        return true
    }

    // MARK: The client's other messages

    /// Ends the client's stream if it is one of another node, and returns whether it was. The stream has ended for the client,
    /// whatever happens to the channel. The response to a pending request for it is answered with an unsubscription.
    func unsubscribe(_ streamID: [UInt8]) -> Bool {
        guard let stream = streams[streamID], stream.phase != .resumingHere else { return false }
        handle(.cancelled, of: streamID)
        return true
    }

    func endStreams(refused: (_ target: String, _ actor: String) -> TrebuchetError?) {
        for stream in Array(streams.all) {
            guard let error = refused(stream.target, stream.actor.text), unsubscribe(stream.streamID) else { continue }
            connection.failStream(stream.streamID, error)
        }
    }

    func endStreamsForReconnect() -> [[UInt8]] {
        streams.all.map(\.streamID).filter { unsubscribe($0) }
    }

    /// Notifies other nodes of a change of the client's principal, of a revocation of its authorization, or of the end of one.
    func callerDidChange() {
        guard isOpen else { return }
        let client = client()
        excess = client.excess
        guard let excess else { return channels.values.forEach { $0.send(.client, client.payload) } }
        // The previous principal's calls and streams must end.
        endStreams { _, _ in excess }
        connection.endSharedStreams(excess)
        for call in connection.forwardedCalls {
            guard let relayed = call.forwarded as? ForwardedCall else { continue }
            connection.finish(call, .failure(relayed.channel == nil ? relayed.refusal(excess) : excess.ofSentCall))
        }
        for channel in channels.values { channel.shutDown() }
        channels = [:]
        dropQueuedMessages()
    }

    func linkDidBecomeWritable() { for channel in channels.values { channel.acknowledgeReceivedBytes() } }

    func close() {
        for channel in channels.values { channel.shutDown() }
        (channels, streams) = ([:], ForwardedStreams())
        dropQueuedMessages()
    }

    /// Drops all waiting messages. The owner lookups they wait for may take long.
    private func dropQueuedMessages() {
        for traffic in slots.values {
            traffic.calls = OrderedResend()
            traffic.cancelOwnerLookup()
        }
        slots = [:]
    }
}

/// A weak reference to a forwarder for closures that other threads pass to the reactor.
private struct WeakRemoteCallForwarder {
    weak var forwarder: RemoteCallForwarder?
}

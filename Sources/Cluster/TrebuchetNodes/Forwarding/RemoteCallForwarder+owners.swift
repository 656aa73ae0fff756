internal import Trebuchet
internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire

/// Handles the messages that owner nodes send.
extension RemoteCallForwarder: OwnerChannelDelegate {
    var isWritable: Bool { connection.isWritable }

    func receive(_ bytes: UnsafeRawBufferPointer, over channel: OwnerChannel) {
        if isOpen { _ = shard.withMessage(bytes) { receive($0, over: channel) } }
    }

    private func receive(_ message: borrowing Message, over channel: OwnerChannel) {
        let envelope = message.envelope
        switch message.kind {
        case .response:
            switch channel.removeRequest(withID: message.callID) {
            case .call(let relayed): return answer(relayed, message)
            case .stream(let attempt): return fail(attempt, message, over: channel)
            case nil: return
            }
        case .streamStart: return startStream(message, over: channel)
        case .streamData:
            let streamID = Array(message.bytes(envelope.pointee.streamID))
            guard streams.receiveUpdate(of: streamID, envelope.pointee.sequenceNumber, over: channel.number) else {
                return
            }
        case .streamEnd:
            let streamID = Array(message.bytes(envelope.pointee.streamID))
            let reason = StreamEndReason(rawValue: message.text(envelope.pointee.reason))
            if reason == .serverDraining || reason == .connectionClosed {
                return streamDidMove(streamID, over: channel)
            }
            // The client has ended every other stream with this name and knows so.
            guard handle(.finished(over: channel.number), of: streamID) == .passOn else { return }
        case .streamError:
            let streamID = Array(message.bytes(envelope.pointee.streamID))
            if let relayed = channel.removeResumption(named: streamID) {
                if isPassing(message) { return retryResumption(relayed) }
                if let call = underWay(relayed) { connection.withdraw(call) }
                connection.passOn(message.bytes)
                return didEnd(relayed)
            }
            guard handle(.finished(over: channel.number), of: streamID) == .passOn else { return }
        case .error: break
        // Errors about the connection to the owner node do not concern the client.
        default: return
        }
        connection.passOn(message.bytes)
    }

    private func answer(_ relayed: ForwardedCall, _ message: borrowing Message) {
        guard let call = underWay(relayed) else { return }
        if relayed.isResumption, isPassing(message) { return retryResumption(relayed) }
        connection.answer(call, from: ActorName(relayed.actor), message)
        didEnd(relayed)
    }

    /// Notes that the call is no longer at its owner, and sends the messages queued behind it.
    private func didEnd(_ relayed: ForwardedCall) {
        relayed.channel = nil
        let traffic = traffic(of: relayed.slot)
        traffic.calls.didEnd(relayed.order)
        proceed(traffic)
    }

    private func startStream(_ message: borrowing Message, over channel: OwnerChannel) {
        let envelope = message.envelope
        let streamID = Array(message.bytes(envelope.pointee.streamID))
        // An owner never names a stream like a callID of the channel: an equal name is one that the client chose.
        let isNamed = message.callID.elementsEqual(streamID)
        // A permission says only that the client may observe: this node subscribes to the stream itself.
        let isPermission = !isNamed && streamID == ForwardedCallID.permission
        let start = ForwardedStream.Start(
            streamID: streamID, epoch: message.text(envelope.pointee.epoch), position: envelope.pointee.sequenceNumber)
        let input: ForwardedStream.Input =
            isPermission ? .permitted(over: channel.number) : .started(start, over: channel.number)
        let request =
            isNamed
            ? channel.removeResumption(named: streamID).map { .call($0) }
            : channel.removeRequest(withID: message.callID)
        /// Ends the stream, which the client does not have, at its owner.
        func endAtOwner() { if !isPermission { channel.unsubscribe(streamID) } }
        var begun: ForwardedCall?
        defer { if let begun { didEnd(begun) } }
        let (stream, action): (ForwardedStream, ForwardedStream.Action)
        switch request {
        case .stream(let attempt):
            guard let resumed = streams[attempt] else { return endAtOwner() }
            if let revocation = connection.authorization.revocation(of: resumed.actor.text) {
                handle(.cancelled, of: attempt)
                endAtOwner()
                return connection.failStream(resumed.streamID, revocation)
            }
            if !isPermission, attempt.streamID != streamID { endReplaced(streams.remove(streamID), by: channel) }
            (stream, action) = (resumed, handle(input, of: attempt))
        case .call(let relayed):
            guard let call = underWay(relayed), var requested = relayed.removeStream() else { return endAtOwner() }
            begun = relayed
            // Its authorization may have been revoked since the request.
            if let revocation = connection.authorization.revocation(of: requested.actor.text) {
                endAtOwner()
                return connection.finish(call, .failure(revocation))
            }
            connection.withdraw(call)
            action = requested.handle(input)
            if action == .passOnStart { endReplaced(streams.insert(requested), by: channel) }
            stream = requested
        case nil: return endAtOwner()
        }
        switch action {
        case .share: share(stream, at: channel.node, epoch: start.epoch, position: start.position)
        case .passOnStart:
            if begun == nil { limitCatchUp(of: streamID) }
            connection.passOnStart(message, as: stream.callID)
            // No notice follows: it arrived before the start. Responses of the later owner wait for the stream's versions.
            if begun != nil, let owner = node.laterOwner(of: stream.slot, than: channel.node) {
                handle(.ownerChanged(to: channels[owner]?.number), of: streamID)
            }
            // The client resumes it over its next connection.
            if connection.isDraining, unsubscribe(streamID) { connection.reportDrainedStream(streamID) }
        default: break
        }
    }

    /// Starts a stream that the owner permits the client to observe, and that this node receives once for all of its clients.
    ///
    /// - Parameters:
    ///   - epoch: The epoch of the stream at its owner.
    ///   - position: The client's position, if it does not start with the current value.
    private func share(_ stream: ForwardedStream, at owner: ClusterNode, epoch: String, position: UInt64?) {
        guard connection.isOpen else { return }
        // The reservation of the client's request continues: no limit ends the stream when its actor moves.
        let reservation = stream.reservation ?? connection.reserveMovedStream(filtered: false)
        let (streamID, isFirst) = (connection.nextStreamID(), stream.streamID.isEmpty)
        // A stream that the client had before was ended when the connection began to drain.
        if connection.isDraining, !isFirst { return }
        let shared = stream.shared(
            as: ForwardedStream.Start(streamID: streamID, epoch: epoch, position: position))
        let request = StreamRequest(
            shared: RequestedStream(actor: stream.actor, target: stream.target, resumed: nil, knownAs: streamID),
            streamID: streamID, callID: stream.callID,
            seen: StreamRequest.ResumePosition(epoch: epoch, sequence: shared.sequence), reservation: reservation,
            isFirst: isFirst, on: connection)
        guard request.awaitSharedStream(at: position) else { return }
        guard node.laterOwner(of: stream.slot, than: owner) == nil else {
            // Without another lookup of the owner, no notice would follow.
            node.forgetOwner(of: stream.slot, owner)
            return request.start(with: .elsewhere)
        }
        let connection = connection
        let key = SharedStreamSubscriptions.Key(actor: stream.actor.text, target: stream.target)
        node.nodes.shared.join(key, at: owner, behind: (epoch, shared.sequence)) { shared, answer in
            // Ordered behind earlier notices to the reactor, for example about the owner of the slot.
            connection.shard.reactor.execute {
                request.start(with: answer)
                if case .stream = answer { shared.didJoin() }
            }
        }
    }

    /// Handles the failure of an attempt. The client knows the stream by its previous name and has made no request.
    private func fail(_ attempt: ForwardedStreams.Attempt, _ message: borrowing Message, over channel: OwnerChannel) {
        guard handle(.failed(isTemporary: isPassing(message), over: channel.number), of: attempt) == .fail else {
            return
        }
        let envelope = message.envelope
        connection.failStream(
            attempt.streamID,
            TrebuchetError(
                .init(ErrorCode(rawValue: message.text(envelope.pointee.errorCode))),
                message.text(envelope.pointee.errorMessage),
                retryAfter: envelope.pointee.retryAfterMilliseconds.map { .milliseconds($0) }))
    }

    /// Returns whether the owner failed only temporarily. Such a failure does not end a stream that the client has.
    private func isPassing(_ message: borrowing Message) -> Bool {
        ErrorCode(rawValue: message.text(message.envelope.pointee.errorCode)) == TrebuchetError.Code.unavailable.wire
    }

    /// Repeats the client's request to resume a stream, until its deadline.
    private func retryResumption(_ relayed: ForwardedCall) {
        guard underWay(relayed) != nil else { return }
        relayed.channel = nil
        shard.reactor.schedule(after: ServerConnection.retryPause) { [weak self] in
            guard let self, self.isOpen else { return }
            let traffic = self.traffic(of: relayed.slot)
            traffic.calls.requeue(relayed, relayed.order)
            self.proceed(traffic)
        }
    }

    func requestWasRefused(_ request: OwnerChannel.PendingRequest, over channel: OwnerChannel) {
        switch request {
        case .call(let relayed):
            guard underWay(relayed) != nil else { return }
            relayed.channel = nil
            node.forgetOwner(of: relayed.slot, channel.node)
            let traffic = traffic(of: relayed.slot)
            traffic.calls.requeue(relayed, relayed.order)
            proceed(traffic)
        case .stream(let attempt): handle(.refused(over: channel.number), of: attempt)
        }
    }

    func callMustBeRepeated(_ relayed: ForwardedCall, over channel: OwnerChannel) {
        guard let call = underWay(relayed) else { return }
        guard relayed.mayBeResent() else {
            let text = "the node that received the call no longer owns its actor; the call may have been executed"
            connection.finish(call, .failure(TrebuchetError(.unknownOutcome, text)))
            return didEnd(relayed)
        }
        requestWasRefused(.call(relayed), over: channel)
    }

    func streamDidMove(_ streamID: [UInt8], over channel: OwnerChannel) {
        if let relayed = channel.removeResumption(named: streamID) {
            return requestWasRefused(.call(relayed), over: channel)
        }
        handle(.moved(over: channel.number), of: streamID)
    }

    func streamDidCatchUp(_ streamID: [UInt8], over channel: OwnerChannel) {
        handle(.caughtUp(over: channel.number), of: streamID)
    }

    func callWasCancelled(_ relayed: ForwardedCall) {
        let traffic = traffic(of: relayed.slot)
        traffic.calls.remove(relayed.order)
        relayed.channel?.cancel(relayed)
        didEnd(relayed)
    }

    /// Fails unsent calls and does not resend them: they would overflow the queue again.
    func channelDidOverflow(_ channel: OwnerChannel, received: UInt64) {
        guard isOpen, channels[channel.node] === channel else { return }
        let error = TrebuchetError(
            .rateLimited, "send queue to the actor's node is full for this connection; retry later")
        var touched: [SlotSendState] = []
        for call in connection.forwardedCalls {
            guard let relayed = call.forwarded as? ForwardedCall, relayed.channel === channel,
                relayed.messageIndex > received
            else { continue }
            connection.finish(call, .failure(relayed.refusal(error)))
            relayed.channel = nil
            let traffic = traffic(of: relayed.slot)
            traffic.calls.didEnd(relayed.order)
            touched.append(traffic)
        }
        channelDidEnd(channel, received: received)
        for traffic in touched { proceed(traffic) }
    }

    func channelDidEnd(_ channel: OwnerChannel, received: UInt64?) {
        guard isOpen, removeChannel(channel) else { return }
        var touched: [ClusterSlot: SlotSendState] = [:]
        for stream in Array(streams.all) where stream.phase.channel == channel.number {
            _ = streams.handle(.channelLost(channel.number), of: stream.streamID)
            touched[stream.slot] = traffic(of: stream.slot)
        }
        for request in channel.removeAllRequests() {
            switch request {
            // The attempts have ended with the channel.
            case .stream: break
            case .call(let relayed):
                guard let call = underWay(relayed) else { continue }
                relayed.channel = nil
                let traffic = traffic(of: relayed.slot)
                touched[relayed.slot] = traffic
                traffic.calls.didEnd(relayed.order)
                let isTooLate = received.map { relayed.messageIndex > $0 } ?? false
                if isTooLate || relayed.mayBeResent() {
                    traffic.calls.addCall(relayed, relayed.order)
                } else {
                    let text = "the connection to the actor's node was lost; the call may have been executed"
                    connection.finish(call, .failure(TrebuchetError(.unknownOutcome, text)))
                }
            }
        }
        for traffic in touched.values {
            node.forgetOwner(of: traffic.slot, channel.node)
            proceed(traffic)
        }
    }
}

internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire

/// Handles the messages that owner nodes send.
extension RemoteCallForwarder: OwnerChannelDelegate {
    var isWritable: Bool { connection.isWritable }

    func receive(_ bytes: UnsafeRawBufferPointer, over line: OwnerChannel) {
        guard isOpen, let place = shard.scans.reserve() else { return }
        defer { shard.scans.giveBack() }
        guard (try? place.pointee.scan(bytes)) != nil else { return }
        let message = Message(bytes: bytes, envelope: UnsafePointer(place))
        let envelope = message.envelope
        switch message.kind {
        case .response:
            switch line.takeRequest(message.callID) {
            case .call(let relayed): return answer(relayed, message)
            case .stream(let stream): return fail(stream, message)
            case nil: return
            }
        case .streamStart: return startStream(message, over: line)
        case .streamData:
            guard let stream = streams[Array(message.bytes(envelope.pointee.streamID))], stream.channel === line else {
                return
            }
            if let sequence = envelope.pointee.sequenceNumber { stream.sequence = sequence }
        case .streamEnd:
            let streamID = Array(message.bytes(envelope.pointee.streamID))
            let reason = StreamEndReason(rawValue: message.text(envelope.pointee.reason))
            if reason == .serverDraining || reason == .connectionClosed { return moved(streamID, over: line) }
            // The client has ended every other stream with this name and knows so.
            guard let stream = streams[streamID], stream.channel === line else { return }
            streams[streamID] = nil
            didShow(streamID)
        case .streamError:
            let streamID = Array(message.bytes(envelope.pointee.streamID))
            if let relayed = line.takeResumption(named: streamID) {
                if isPassing(message) { return askAgain(relayed) }
                if let call = underWay(relayed) { connection.withdraw(call) }
                connection.passOn(bytes)
                return didEnd(relayed)
            }
            guard let stream = streams[streamID], stream.channel === line else { return }
            streams[streamID] = nil
            didShow(streamID)
        case .error: break
        // Errors about the connection to the owner node do not concern the client.
        default: return
        }
        connection.passOn(bytes)
    }

    private func answer(_ relayed: ForwardedCall, _ message: borrowing Message) {
        guard let call = underWay(relayed) else { return }
        if relayed.isResumption, isPassing(message) { return askAgain(relayed) }
        connection.answer(call, relayed, message)
        didEnd(relayed)
    }

    /// Notes that the call is no longer at its owner, and sends the messages queued behind it.
    private func didEnd(_ relayed: ForwardedCall) {
        relayed.channel = nil
        let traffic = traffic(of: relayed.slot)
        traffic.calls.didEnd(relayed.order)
        proceed(traffic)
    }

    private func startStream(_ message: borrowing Message, over line: OwnerChannel) {
        let envelope = message.envelope
        let streamID = Array(message.bytes(envelope.pointee.streamID))
        // An owner never names a stream like a callID of the channel: an equal name is one that the client chose.
        let isNamed = message.callID.elementsEqual(streamID)
        // A permission says only that the client may observe: this node subscribes to the stream itself.
        let isPermission = !isNamed && streamID == ForwardedCallID.permission
        let stream: ForwardedStream
        var begun: ForwardedCall?
        switch isNamed ? line.takeResumption(named: streamID).map({ .call($0) }) : line.takeRequest(message.callID) {
        case .stream(let resumed):
            guard resumed.isWanted else { return isPermission ? () : line.unsubscribe(streamID) }
            _ = didResume(resumed.streamID)
            stream = resumed
            if let revocation = connection.revocation(of: stream.actor) {
                if !isPermission { line.unsubscribe(streamID) }
                return connection.failStream(stream.streamID, revocation)
            }
        case .call(let relayed):
            guard let call = underWay(relayed), let asked = relayed.stream else {
                return isPermission ? () : line.unsubscribe(streamID)
            }
            // Its authorization may have been revoked since the request.
            if let revocation = connection.revocation(of: asked.actor) {
                if !isPermission { line.unsubscribe(streamID) }
                connection.finish(call, .failure(revocation))
                return didEnd(relayed)
            }
            connection.withdraw(call)
            (stream, begun) = (asked, relayed)
        case nil: return isPermission ? () : line.unsubscribe(streamID)
        }
        if isPermission {
            connection.share(
                stream, at: line.node, epoch: message.text(envelope.pointee.epoch),
                position: envelope.pointee.sequenceNumber)
            if let begun { didEnd(begun) }
            return
        }
        stream.startStream(
            as: streamID, epoch: message.text(envelope.pointee.epoch), position: envelope.pointee.sequenceNumber)
        stream.channel = line
        // The client may have started two streams with one name.
        if let old = streams.updateValue(stream, forKey: streamID), old.channel !== line {
            old.channel?.unsubscribe(streamID)
        }
        if begun == nil { didTakeUp(stream) }
        connection.passOn(message, as: stream.callID)
        // The client resumes it over its next connection.
        if connection.isDraining, unsubscribe(streamID) { connection.tellDeparture(of: streamID) }
        if let begun { didEnd(begun) }
    }

    /// Fails a stream that cannot continue. The client knows it by its previous name and has made no request.
    private func fail(_ stream: ForwardedStream, _ message: borrowing Message) {
        guard stream.isWanted else { return }
        if isPassing(message) { return resumeLater(stream) }
        _ = didResume(stream.streamID)
        let envelope = message.envelope
        connection.failStream(
            stream.streamID,
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
    private func askAgain(_ relayed: ForwardedCall) {
        guard underWay(relayed) != nil else { return }
        relayed.channel = nil
        shard.reactor.schedule(after: Self.pause) { [weak self] in
            guard let self, self.isOpen else { return }
            let traffic = self.traffic(of: relayed.slot)
            traffic.calls.didComeBack(relayed, relayed.order)
            self.proceed(traffic)
        }
    }

    func refused(_ asked: OwnerChannel.PendingRequest, over line: OwnerChannel) {
        switch asked {
        case .call(let relayed):
            guard underWay(relayed) != nil else { return }
            relayed.channel = nil
            shard.forgetOwner(of: relayed.slot, line.node)
            let traffic = traffic(of: relayed.slot)
            traffic.calls.didComeBack(relayed, relayed.order)
            proceed(traffic)
        case .stream(let stream):
            guard stream.isWanted else { return }
            shard.forgetOwner(of: stream.slot, line.node)
            resume(stream)
        }
    }

    func refusedAfterBeginning(_ relayed: ForwardedCall, over line: OwnerChannel) {
        guard let call = underWay(relayed) else { return }
        guard relayed.goesAgain() else {
            let text = "the node that received the call no longer owns its actor; the call may have been executed"
            connection.finish(call, .failure(TrebuchetError(.unknownOutcome, text)))
            return didEnd(relayed)
        }
        refused(.call(relayed), over: line)
    }

    func moved(_ streamID: [UInt8], over line: OwnerChannel) {
        if let relayed = line.takeResumption(named: streamID) { return refused(.call(relayed), over: line) }
        guard let stream = streams[streamID], stream.channel === line else { return }
        streams[streamID] = nil
        shard.forgetOwner(of: stream.slot, line.node)
        resume(stream)
    }

    func shown(_ streamID: [UInt8], over line: OwnerChannel) {
        if streams[streamID]?.channel === line { didShow(streamID) }
    }

    func cancelled(_ relayed: ForwardedCall) {
        let traffic = traffic(of: relayed.slot)
        traffic.calls.remove(relayed.order)
        relayed.channel?.cancel(relayed)
        didEnd(relayed)
    }

    /// Fails unsent calls and does not resend them: they would overflow the queue again.
    func overflowed(_ line: OwnerChannel, received: UInt64) {
        guard isOpen, channels[line.node] === line else { return }
        let error = TrebuchetError(
            .rateLimited, "send queue to the actor's node is full for this connection; retry later")
        var touched: [SlotSendState] = []
        for call in Array(connection.running.values) {
            guard let relayed = call.relayed, relayed.channel === line, relayed.place > received else { continue }
            connection.finish(call, .failure(error))
            relayed.channel = nil
            let traffic = traffic(of: relayed.slot)
            traffic.calls.didEnd(relayed.order)
            touched.append(traffic)
        }
        ended(line, received: received)
        for traffic in touched { proceed(traffic) }
    }

    func ended(_ line: OwnerChannel, received: UInt64?) {
        guard isOpen, removeCall(line) else { return }
        var touched: [ClusterSlot: SlotSendState] = [:]
        for stream in streams.values where stream.channel === line {
            streams[stream.streamID] = nil
            touched[stream.slot] = wait(for: stream)
        }
        for asked in line.takeAll() {
            switch asked {
            case .stream(let stream):
                if stream.isWanted { touched[stream.slot] = wait(for: stream) }
            case .call(let relayed):
                guard let call = underWay(relayed) else { continue }
                relayed.channel = nil
                let traffic = traffic(of: relayed.slot)
                touched[relayed.slot] = traffic
                traffic.calls.didEnd(relayed.order)
                let cameTooLate = received.map { relayed.place > $0 } ?? false
                if cameTooLate || relayed.goesAgain() {
                    traffic.calls.addCall(relayed, relayed.order)
                } else {
                    let text = "the node that received the call has left the cluster; the call may have been executed"
                    connection.finish(call, .failure(TrebuchetError(.unknownOutcome, text)))
                }
            }
        }
        for traffic in touched.values {
            shard.forgetOwner(of: traffic.slot, line.node)
            proceed(traffic)
        }
    }
}

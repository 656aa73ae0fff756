internal import TrebuchetActors
internal import TrebuchetCluster
internal import TrebuchetWire

/// What owners send.
extension ConnectionRelays: OwnerLineUser {
    var isWritable: Bool { connection.isWritable }

    func receive(_ bytes: UnsafeRawBufferPointer, over line: OwnerLine) {
        guard isOpen, let place = shard.scans.take() else { return }
        defer { shard.scans.giveBack() }
        guard (try? place.pointee.scan(bytes)) != nil else { return }
        let message = Message(bytes: bytes, envelope: UnsafePointer(place))
        let envelope = message.envelope
        switch message.kind {
        case .response:
            switch line.take(message.callID) {
            case .call(let relayed): return answer(relayed, message)
            case .stream(let stream): return fail(stream, message)
            case nil: return
            }
        case .streamStart: return begin(message, over: line)
        case .streamData:
            guard let stream = streams[Array(message.bytes(envelope.pointee.streamID))], stream.line === line else {
                return
            }
            if let sequence = envelope.pointee.sequenceNumber { stream.sequence = sequence }
        case .streamEnd:
            let streamID = Array(message.bytes(envelope.pointee.streamID))
            let reason = StreamEndReason(rawValue: message.text(envelope.pointee.reason))
            if reason == .serverDraining || reason == .connectionClosed { return moved(streamID, over: line) }
            // That of one which the client has ended it knows.
            guard let stream = streams[streamID], stream.line === line else { return }
            streams[streamID] = nil
            didShow(streamID)
        case .streamError:
            let streamID = Array(message.bytes(envelope.pointee.streamID))
            if let relayed = line.take(named: streamID) {
                if isPassing(message) { return askAgain(relayed) }
                if let call = underWay(relayed) { connection.withdraw(call) }
                connection.passOn(bytes)
                return didEnd(relayed)
            }
            guard let stream = streams[streamID], stream.line === line else { return }
            streams[streamID] = nil
            didShow(streamID)
        case .error: break
        // The lines to a node are not what these are about.
        default: return
        }
        connection.passOn(bytes)
    }

    private func answer(_ relayed: RelayedCall, _ message: borrowing Message) {
        guard let call = underWay(relayed) else { return }
        if relayed.isResumption, isPassing(message) { return askAgain(relayed) }
        connection.answer(call, relayed, message)
        didEnd(relayed)
    }

    /// It is not at its owner any more; what stands behind it may go.
    private func didEnd(_ relayed: RelayedCall) {
        relayed.line = nil
        let traffic = traffic(of: relayed.slot)
        traffic.calls.didEnd(relayed.order)
        proceed(traffic)
    }

    private func begin(_ message: borrowing Message, over line: OwnerLine) {
        let envelope = message.envelope
        let streamID = Array(message.bytes(envelope.pointee.streamID))
        // An owner calls no stream as a line calls a call: that is one which its client has named.
        let isNamed = message.callID.elementsEqual(streamID)
        // Of a stream that this node takes itself it says no more than that the client may observe.
        let isPermission = !isNamed && streamID == LineCallID.permission
        let stream: RelayedStream
        var begun: RelayedCall?
        switch isNamed ? line.take(named: streamID).map({ .call($0) }) : line.take(message.callID) {
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
            // Its rights may have been taken away since it has asked.
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
        stream.begin(
            as: streamID, epoch: message.text(envelope.pointee.epoch), position: envelope.pointee.sequenceNumber)
        stream.line = line
        // Two may have been begun under one name of the client's.
        if let old = streams.updateValue(stream, forKey: streamID), old.line !== line {
            old.line?.unsubscribe(streamID)
        }
        if begun == nil { didTakeUp(stream) }
        connection.passOn(message, as: stream.callID)
        // The client resumes it over its next connection.
        if connection.isDraining, unsubscribe(streamID) { connection.tellDeparture(of: streamID) }
        if let begun { didEnd(begun) }
    }

    /// A stream cannot go on. Its client knows it by the name that it had, and has asked for nothing.
    private func fail(_ stream: RelayedStream, _ message: borrowing Message) {
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

    /// Whether an owner could not go on with a stream just now, which is no reason for a stream to end that its client has.
    private func isPassing(_ message: borrowing Message) -> Bool {
        ErrorCode(rawValue: message.text(message.envelope.pointee.errorCode)) == TrebuchetError.Code.unavailable.wire
    }

    /// The client's question where a stream goes on is asked again, until its time is over.
    private func askAgain(_ relayed: RelayedCall) {
        guard underWay(relayed) != nil else { return }
        relayed.line = nil
        shard.reactor.schedule(after: Self.pause) { [weak self] in
            guard let self, self.isOpen else { return }
            let traffic = self.traffic(of: relayed.slot)
            traffic.calls.didComeBack(relayed, relayed.order)
            self.proceed(traffic)
        }
    }

    func refused(_ asked: OwnerLine.Asked, over line: OwnerLine) {
        switch asked {
        case .call(let relayed):
            guard underWay(relayed) != nil else { return }
            relayed.line = nil
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

    func refusedAfterBeginning(_ relayed: RelayedCall, over line: OwnerLine) {
        guard let call = underWay(relayed) else { return }
        guard relayed.goesAgain() else {
            let text = "the node that the call was sent to does not own its actor any more, and it may have run there"
            connection.finish(call, .failure(TrebuchetError(.unknownOutcome, text)))
            return didEnd(relayed)
        }
        refused(.call(relayed), over: line)
    }

    func moved(_ streamID: [UInt8], over line: OwnerLine) {
        if let relayed = line.take(named: streamID) { return refused(.call(relayed), over: line) }
        guard let stream = streams[streamID], stream.line === line else { return }
        streams[streamID] = nil
        shard.forgetOwner(of: stream.slot, line.node)
        resume(stream)
    }

    func shown(_ streamID: [UInt8], over line: OwnerLine) {
        if streams[streamID]?.line === line { didShow(streamID) }
    }

    func cancelled(_ relayed: RelayedCall) {
        let traffic = traffic(of: relayed.slot)
        traffic.calls.remove(relayed.order)
        relayed.line?.cancel(relayed)
        didEnd(relayed)
    }

    /// What has not gone is not sent again: it would be too much once more.
    func overflowed(_ line: OwnerLine, received: UInt64) {
        guard isOpen, lines[line.node] === line else { return }
        let error = TrebuchetError(
            .rateLimited, "too much of this connection waits for the node that its actor lives on; try again later")
        var touched: [SlotTraffic] = []
        for call in Array(connection.running.values) {
            guard let relayed = call.relayed, relayed.line === line, relayed.place > received else { continue }
            connection.finish(call, .failure(error))
            relayed.line = nil
            let traffic = traffic(of: relayed.slot)
            traffic.calls.didEnd(relayed.order)
            touched.append(traffic)
        }
        ended(line, received: received)
        for traffic in touched { proceed(traffic) }
    }

    func ended(_ line: OwnerLine, received: UInt64?) {
        guard isOpen, forget(line) else { return }
        var touched: [ClusterSlot: SlotTraffic] = [:]
        for stream in streams.values where stream.line === line {
            streams[stream.streamID] = nil
            touched[stream.slot] = wait(for: stream)
        }
        for asked in line.takeAll() {
            switch asked {
            case .stream(let stream):
                if stream.isWanted { touched[stream.slot] = wait(for: stream) }
            case .call(let relayed):
                guard let call = underWay(relayed) else { continue }
                relayed.line = nil
                let traffic = traffic(of: relayed.slot)
                touched[relayed.slot] = traffic
                traffic.calls.didEnd(relayed.order)
                let cameTooLate = received.map { relayed.place > $0 } ?? false
                if cameTooLate || relayed.goesAgain() {
                    traffic.calls.add(relayed, relayed.order)
                } else {
                    let text = "the node that the call was sent to is gone, and it may have run there"
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

package import TrebuchetActors
internal import TrebuchetWire

/// The end of streams, by the server or by the client.
extension ServerConnection {
    /// Ends the streams of a client that is asked to leave, which resumes them over its next connection. This includes streams that
    /// are being resumed at another owner: their ends precede any response.
    func endStreamsForReconnect() {
        for subscription in Array(streams.values) { endStream(subscription, reason: .serverDraining, error: nil) }
        for request in Array(streams.starting.values) where request.name.knownAs != nil {
            request.reservation.withdraw(nil)
            streams.removeRequest(request)
            reportDrainedStream(request.streamID)
        }
        for call in Array(running.values) {
            guard let streamID = call.stream?.knownAs else { continue }
            withdraw(call)
            reportDrainedStream(streamID)
        }
        for streamID in forwarder?.endStreamsForReconnect() ?? [] { reportDrainedStream(streamID) }
        sendReadyResponses()
    }

    /// Ends a stream that a draining client resumes: the client resumes it over its next connection. No actor is asked.
    func resumeElsewhere(_ message: borrowing Message) {
        if let upstream {
            let name = ownName(in: message)
            return if let name { upstream.move(name) } else { upstream.refuse(Array(message.callID)) }
        }
        guard hasName(message) else { return }
        if let name = ownName(in: message) {
            endStream(name)
            return reportDrainedStream(name)
        }
        let (streamID, envelope) = (nextStreamID(), message.envelope)
        let (callID, actor, target) = (Array(message.callID), message.actorName, message.target)
        let epoch = envelope.pointee.epoch.isAbsent ? "" : message.text(envelope.pointee.epoch)
        let sequence = envelope.pointee.lastSequence
        link.send { buffer in
            callID.withUnsafeBytes {
                EnvelopeWriter.streamStart(
                    streamID: streamID, callID: $0, actorID: actor, target: target, epoch: epoch, sequence: sequence,
                    into: &buffer)
            }
        }
        reportDrainedStream(streamID)
    }

    /// Sends a stream request of a draining connection elsewhere: to the client's server, which asks the next owner, or to the client's next
    /// connection.
    ///
    /// - Returns: false for a new stream of the client, which needs a beginning first.
    func beginsElsewhere(_ name: RequestedStream, _ callID: [UInt8]) -> Bool {
        if let upstream {
            if let streamID = name.resumed { upstream.move(streamID) } else { upstream.refuse(callID) }
            return true
        }
        guard let streamID = name.resumed ?? name.knownAs else { return false }
        reportDrainedStream(streamID)
        return true
    }

    package func reportDrainedStream(_ streamID: [UInt8]) {
        if isOpen { reportStreamEnd(of: streamID, reason: .serverDraining, error: nil) }
    }

    /// Ends the streams of an actor that checks its observers: this connection is no longer authorized. May be called on any thread.
    func endStreams(of actor: ActorName, _ error: TrebuchetError) {
        shard.reactor.run {
            for (streamID, name) in self.streams.observerChecked where name == actor {
                if let subscription = self.streams[streamID] {
                    self.endStream(subscription, reason: .error, error: error)
                }
            }
            // Streams that are starting were authorized earlier.
            for request in self.streams.starting.values where request.name.actor == actor {
                request.reservation.withdraw(error)
            }
        }
    }

    /// Handles the client's unsubscription from a stream.
    func unsubscribe(_ message: borrowing Message) {
        let streamID = Array(message.bytes(message.envelope.pointee.streamID))
        if forwarder?.unsubscribe(streamID) == true {
            return reportStreamEnd(of: streamID, reason: .clientUnsubscribed, error: nil)
        }
        if let subscription = streams[streamID] {
            return endStream(subscription, reason: .clientUnsubscribed, error: nil)
        }
        // The stream may not have started yet.
        if let request = streams.starting[streamID], request.name.resumed != nil || request.name.knownAs == streamID {
            request.reservation.withdraw(nil)
            streams.removeRequest(request)
        } else if let call = running[streamID], call.stream?.resumed != nil {
            call.cancel()
            withdraw(call)
        } else if let call = running[StreamRequest.key(of: streamID)] {
            withdraw(call)
        } else {
            return
        }
        reportStreamEnd(of: streamID, reason: .clientUnsubscribed, error: nil)
        sendReadyResponses()
    }

    /// Ends the stream with this name, wherever it is: the client resumes a stream under the name.
    func endStream(_ streamID: [UInt8]) {
        _ = forwarder?.unsubscribe(streamID)
        if let old = streams[streamID] { removeCall(old) }
        if let call = running[StreamRequest.key(of: streamID)] { withdraw(call) }
        guard let request = streams.starting[streamID], request.name.knownAs == streamID else { return }
        request.reservation.withdraw(nil)
        streams.removeRequest(request)
    }

    func removeCall(_ subscription: StreamSubscription) {
        shard.counts.count(.streamsEnded)
        streams.remove(subscription.streamID)
        subscription.broadcaster.remove(subscription)
        releaseStream(isFiltered: subscription.isFiltered)
    }

    /// Removes a stream and notifies the client.
    package func endStream(_ subscription: StreamSubscription, reason: StreamEndReason, error: TrebuchetError?) {
        // The end of an earlier stream may have closed the connection.
        guard streams[subscription.streamID] === subscription else { return }
        shard.observer.didEnd(subscription, of: name, reason.rawValue)
        if !streams.movable.isEmpty, isOpen, error == nil, movesAtEnd(subscription, reason) { return }
        removeCall(subscription)
        guard isOpen else { return }
        reportStreamEnd(of: subscription.streamID, reason: reason, error: error)
    }

    func reportStreamEnd(of streamID: [UInt8], reason: StreamEndReason, error: TrebuchetError?) {
        if let error { shard.counts.count(.error(error.code.wire.rawValue)) }
        link.send {
            if let error {
                EnvelopeWriter.streamError(
                    streamID: streamID, message: error.message, code: error.code.wire, into: &$0)
            } else {
                EnvelopeWriter.streamEnd(streamID: streamID, reason: reason, into: &$0)
            }
        }
    }
}

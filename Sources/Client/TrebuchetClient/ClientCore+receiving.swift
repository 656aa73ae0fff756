internal import Bytes
internal import Distributed
internal import Platform
internal import Transports
internal import Relays
internal import Synchronization
internal import TrebuchetWire

/// Messages from the server.
extension ClientCore {
    /// Handles one message from the server, on the event loop. `source` is the number of the connection.
    func receive(_ message: UnsafeRawBufferPointer, over source: Int) {
        do {
            try envelope.scan(message)
        } catch {
            // After an unreadable message the rest of the connection is not trusted either.
            return connection.abandon(
                number: source, TransportError(.closed, "the server sent a malformed message: \(error.message)"))
        }
        switch envelope.kind {
        case .response: return receiveResponse(message, over: source)
        case .invocation, .repeat, .cancel: return receiveCall(message, over: source)
        case .goAway:
            let delay = Duration.milliseconds(envelope.reconnectAfterMilliseconds ?? 0)
            connection.goAway(number: source, reconnectAfter: delay)
            if source == linkNumber {
                isServerDraining = connection.isBeingReplaced && options.whileDisconnected == .wait
            }
            return
        default: break
        }
        // A replaced connection only delivers responses; the streams continue on the new one.
        guard source == linkNumber else { return }
        switch envelope.kind {
        case .streamStart:
            let stale = streams.handleStreamStart(
                callNumber: number(envelope.callID, message), streamID: text(envelope.streamID, message),
                epoch: text(envelope.epoch, message), position: envelope.sequenceNumber)
            if let stale { link?.send(OutgoingMessage.streamEnd(stale)) }
            sendNext()
        case .streamData:
            receiveStreamData(message)
        case .streamEnd:
            streams.handleStreamEnd(
                streamID: text(envelope.streamID, message),
                reason: StreamEndReason(rawValue: text(envelope.reason, message)))
        case .streamError:
            let code = envelope.code.isAbsent ? ErrorCode.internal : ErrorCode(rawValue: text(envelope.code, message))
            if code == .unavailable, connection.isBeingReplaced {
                // The stream was resumed too late for this connection, and is resumed again on the next one.
                return streams.handleStreamEnd(streamID: text(envelope.streamID, message), reason: .serverDraining)
            }
            streams.handleStreamError(
                streamID: text(envelope.streamID, message),
                error: TrebuchetError(.init(code), text(envelope.errorMessage, message), retryAfter: retryAfter))
            sendNext()
        case .hello:
            let limits = envelope.limits.bytes(in: message)
            guard !envelope.limits.isAbsent,
                let terms = try? ValueCoder().decode(AdvertisedLimits.self, from: limits)
            else { return }
            outboundCalls.terms = terms
            advertisedMessageSize = terms.messageSize
            exportedActors.applyTerms(terms)
            sendNext()
        case .error where text(envelope.code, message) == ErrorCode.unauthenticated.rawValue:
            revocations.update(())
        default: break  // Another `error` ends with the connection; unknown kinds are for newer clients.
        }
    }

    private func receiveStreamData(_ message: UnsafeRawBufferPointer) {
        guard let sequence = envelope.sequenceNumber else { return }
        let streamID = text(envelope.streamID, message)
        if !envelope.data.isAbsent {
            streams.handleStreamData(
                streamID: streamID, sequence: sequence, data: envelope.data.bytes(in: message))
        } else if let base = envelope.base, !envelope.patch.isAbsent {
            let resubscription = streams.handleStreamPatch(
                streamID: streamID, sequence: sequence, base: base, patch: envelope.patch.bytes(in: message),
                maximumBytes: options.messageSize)
            if let resubscription { resubscribe(resubscription) }
        }
    }

    private func receiveResponse(_ message: UnsafeRawBufferPointer, over source: Int) {
        let number = number(envelope.callID, message)
        let failure = envelope.hasError ? error(in: message) : nil
        // Copied before any other call: closing a link may deliver another message, which reuses the same envelope.
        let result = envelope.result.isAbsent ? nil : Array(envelope.result.bytes(in: message))
        guard let call = removePendingCall(number) else {
            // A stream that was requested too late for this connection starts on the next one.
            let isLate = connection.isBeingReplaced && (isServerDraining || streams.hadBegun(callNumber: number))
            if let failure, source == linkNumber, !(isLate && failure.code == .unavailable) {
                streams.fail(callNumber: number, error: failure)
            }
            return sendNext()
        }
        if let failure {
            call.finish(.failure(failure))
        } else {
            call.finish(.success(result))
        }
        sendNext()
    }

    private func error(in message: UnsafeRawBufferPointer) -> TrebuchetError {
        TrebuchetError(
            .init(ErrorCode(rawValue: text(envelope.errorCode, message))), text(envelope.errorMessage, message),
            type: envelope.errorType.isAbsent ? nil : text(envelope.errorType, message),
            data: envelope.errorData.isAbsent ? nil : Array(envelope.errorData.bytes(in: message)),
            retryAfter: retryAfter)
    }

    private var retryAfter: Duration? { envelope.retryAfterMilliseconds.map { .milliseconds($0) } }

    private func text(_ range: ByteRange, _ message: UnsafeRawBufferPointer) -> String {
        range.isAbsent ? "" : envelope.string(range, in: message)
    }

    /// Returns the number in a callID of this client; 0 for any other callID.
    private func number(_ range: ByteRange, _ message: UnsafeRawBufferPointer) -> UInt64 {
        UInt64(text(range, message)) ?? 0
    }
}

internal import Bytes
internal import Networking
internal import TrebuchetWire

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

extension Session {
    /// Starts a stream: an invocation of `observe…` that names a streamed state.
    func handleStreamingInvocation(_ record: ActorRecord, stream: String, _ message: UnsafeRawBufferPointer) {
        let envelope = shard.envelope
        let callID = envelope.pointee.callID.bytes(in: message)
        do {
            let filter = try filter(in: message)
            start(record, stream: stream, filter, streamID: nextStreamID(), callID: callID)
        } catch {
            fail(callID, error)
        }
    }

    /// A client that was connected before takes its stream up again: it gets a `streamStart` with the epoch of now, and
    /// the newest value unless it has that already.
    func resume(_ message: UnsafeRawBufferPointer) {
        let envelope = shard.envelope
        let streamID = Array(envelope.pointee.streamID.bytes(in: message))
        let callID = envelope.pointee.callID.isAbsent ? streamID : Array(envelope.pointee.callID.bytes(in: message))
        let name = envelope.pointee.string(envelope.pointee.actorID, in: message)
        let target = shard.wireName(envelope.pointee.string(envelope.pointee.targetIdentifier, in: message))
        let epoch = envelope.pointee.epoch
        let seen = Seen(
            epoch: epoch.isAbsent ? "" : envelope.pointee.string(epoch, in: message),
            sequence: envelope.pointee.lastSequence ?? 0)
        let copy = Array(message)
        do {
            let found = try shard.find(name) { [weak self] _ in
                guard let self, self.isOpen else { return }
                copy.withUnsafeBytes { self.receive($0) }
            }
            guard let record = found else { return }
            guard record.streamNames.contains(target) else {
                throw TrebuchetError(.methodNotFound, "actor '\(name)' has no stream '\(target)'")
            }
            if let old = streams[streamID] { forget(old) }
            let filter = try filter(in: message)
            callID.withUnsafeBytes { start(record, stream: target, filter, streamID: streamID, callID: $0, seen: seen) }
        } catch {
            let code = (error as? TrebuchetError)?.code.wire ?? .internal
            link.send {
                EnvelopeWriter.streamError(
                    streamID: streamID, message: describe(error), code: code, version: version, into: &$0)
            }
        }
    }

    /// What the message asks for of the stream; nil for all of it.
    private func filter(in message: UnsafeRawBufferPointer) throws(TrebuchetError) -> StreamFilter? {
        let envelope = shard.envelope.pointee
        do throws(EnvelopeError) {
            if version == .v3 {
                guard !envelope.filter.isAbsent else { return nil }
                let filter = try StreamFilter(envelope.filter.bytes(in: message))
                return filter == StreamFilter() ? nil : filter
            }
            guard !envelope.streamFilter.isAbsent else { return nil }
            return try StreamFilter.legacy(envelope.streamFilter.bytes(in: message))
        } catch {
            throw TrebuchetError(.invalidArguments, error.message)
        }
    }

    private func start(
        _ record: ActorRecord, stream: String, _ filter: StreamFilter?, streamID: [UInt8],
        callID: UnsafeRawBufferPointer, seen: Seen? = nil
    ) {
        guard streams.count + beginning.count < shard.limits.streamsPerConnection else {
            let text = "this connection has \(shard.limits.streamsPerConnection) streams already"
            return fail(callID, TrebuchetError(.rateLimited, text))
        }
        if shard.isGuarded, let refusal = refusal(of: stream, record.name) { return fail(callID, refusal) }
        let callID = Array(callID)
        let session = self
        beginning.insert(streamID)
        record.executeStreamingTarget(stream) { source in
            let outcome = Result { try source.map { try session.view(of: $0, through: filter) } }
            let position = (source as? any PositionedSource)?.position()
            session.shard.reactor.run {
                session.subscribe(
                    to: outcome, at: position, record, stream: stream, streamID: streamID, callID: callID, seen: seen)
            }
        }
    }

    /// A source as a filter shows it. In the isolation of the state's actor.
    private func view(of source: any AnyStateSource, through filter: StreamFilter?) throws -> any AnyStateSource {
        guard let filter else { return source }
        guard let filterable = source as? any FilterableSource else {
            throw TrebuchetError(.invalidArguments, "this stream takes no filter")
        }
        return try filterable.filtered(
            filter, version, clock: source.home?.reactor ?? shard.reactor, byteLimit: shard.limits.filterBytesPerState)
    }

    private func subscribe(
        to outcome: Result<(any AnyStateSource)?, any Error>, at position: UInt64?, _ record: ActorRecord,
        stream: String, streamID: [UInt8], callID: [UInt8], seen: Seen?
    ) {
        beginning.remove(streamID)
        // An idle client is not to keep the memory that its beginning took.
        if beginning.isEmpty { beginning = [] }
        let source: any AnyStateSource
        switch outcome {
        case .success(let found?): source = found
        case .success(nil): return fail(callID, TrebuchetError(.actorNotFound, "actor '\(record.name)' is gone"))
        case .failure(let error): return fail(callID, error)
        }
        guard isOpen else {
            (source as? FilteredSource)?.endIfUnused()
            return
        }
        if let old = streams[streamID] { forget(old) }
        link.send { buffer in
            callID.withUnsafeBytes {
                EnvelopeWriter.streamStart(
                    streamID: streamID, callID: $0, actorID: record.name, target: stream, epoch: source.epoch,
                    sequence: position, version: version, into: &buffer)
            }
        }
        if let seen, position != nil, seen.epoch != source.epoch {
            let error = TrebuchetError(.overflow, "events were missed: the actor they come from was made anew")
            return tellEnd(of: streamID, reason: .error, error: error)
        }
        shard.states.subscribe(to: source, version: version) { node in
            let subscription = StreamSubscription(streamID: streamID, node: node, session: self)
            if let position { subscription.sent = position }
            if let seen, seen.epoch == source.epoch { subscription.sent = seen.sequence }
            streams[streamID] = subscription
            return subscription
        } attach: { node in
            record.executeStreamingTarget(stream) { source in
                if source == nil { node.send(.ended) } else { node.source.attach(node) }
            }
        }
    }

    /// What a client has of a stream already.
    private struct Seen {
        let epoch: String
        let sequence: UInt64
    }

    /// Not one that a client has brought along from an earlier connection.
    private func nextStreamID() -> [UInt8] {
        while true {
            streamCount += 1
            let streamID = Array((version == .v3 ? "s\(streamCount)" : UUID().uuidString).utf8)
            if streams[streamID] == nil, !beginning.contains(streamID) { return streamID }
        }
    }

    /// The client does not want a stream any more.
    func unsubscribe(_ message: UnsafeRawBufferPointer) {
        let streamID = Array(shard.envelope.pointee.streamID.bytes(in: message))
        guard let subscription = streams[streamID] else { return }
        endStream(subscription, reason: .clientUnsubscribed, error: nil)
    }

    private func forget(_ subscription: StreamSubscription) {
        streams[subscription.streamID] = nil
        subscription.node.remove(subscription)
    }

    /// Says that a stream has ended, and forgets it.
    func endStream(_ subscription: StreamSubscription, reason: StreamEndReason, error: TrebuchetError?) {
        forget(subscription)
        guard isOpen else { return }
        tellEnd(of: subscription.streamID, reason: reason, error: error)
    }

    private func tellEnd(of streamID: [UInt8], reason: StreamEndReason, error: TrebuchetError?) {
        link.send {
            if let error {
                EnvelopeWriter.streamError(
                    streamID: streamID, message: error.message, code: error.code.wire, version: version, into: &$0)
            } else {
                EnvelopeWriter.streamEnd(streamID: streamID, reason: reason, version: version, into: &$0)
            }
        }
    }
}

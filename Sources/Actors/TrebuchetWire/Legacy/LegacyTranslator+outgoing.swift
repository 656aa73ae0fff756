package import Bytes

extension LegacyTranslator {
    /// Translates a server message for the client. The result has one message, two for the rejection of a stream, or none if the
    /// old protocol has no such kind.
    package mutating func outgoing(_ message: UnsafeRawBufferPointer) -> [[UInt8]] {
        do throws(EnvelopeError) {
            try scanned.scan(message)
        } catch {
            return unreadable(message, error)
        }
        switch scanned.kind {
        case .response: return response(message)
        case .error: return [failure(Array(Self.noCall.utf8), text: errorText(message))]
        case .streamStart: return [streamStart(message)]
        case .streamData: return scanned.data.isAbsent ? [] : [streamData(message)]
        case .streamEnd: return [streamEnd(message)]
        case .streamError:
            return [streamError(ending(message), text: errorText(message))]
        case .invocation, .repeat, .cancel, .streamResume, .goAway, .hello: return []
        }
    }

    /// Handles a value that is nested deeper than messages allow. The old versions had no such limit; the client gets an error.
    private mutating func unreadable(_ message: UnsafeRawBufferPointer, _ error: EnvelopeError) -> [[UInt8]] {
        var text = ByteBuffer()
        JSONString.append(error.message, to: &text)
        let inner = UnsafeRawBufferPointer(rebasing: text.bytes.dropFirst().dropLast())
        if !scanned.streamID.isAbsent {
            return [streamError(ending(message), text: inner)]
        }
        guard !scanned.callID.isAbsent else { return [] }
        return [failure(Array(scanned.callID.bytes(in: message)), text: inner)]
    }

    private mutating func response(_ message: UnsafeRawBufferPointer) -> [[UInt8]] {
        let callID = Array(scanned.callID.bytes(in: message))
        let stream = requestedStreams.removeValue(forKey: callID)
        if scanned.hasError {
            let text = errorText(message)
            guard let stream else { return [failure(callID, text: text)] }
            return refusal(of: stream, callID, text: text)
        }
        return [
            Self.makeBytes { buffer in
                buffer.append(#"{"type":"response","payload":{"callID":"# as StaticString)
                quote(callID, &buffer)
                buffer.append(#","result":""# as StaticString)
                if !scanned.result.isAbsent { Base64.encode(scanned.result.bytes(in: message), into: &buffer) }
                buffer.append(#""}}"# as StaticString)
            }
        ]
    }

    /// Writes the response of a failed call.
    ///
    /// - Parameter text: the escaped text of a JSON string.
    private func failure(_ callID: [UInt8], text: UnsafeRawBufferPointer) -> [UInt8] {
        Self.makeBytes { buffer in
            buffer.append(#"{"type":"response","payload":{"callID":"# as StaticString)
            quote(callID, &buffer)
            buffer.append(#","errorMessage":""# as StaticString)
            buffer.append(text)
            buffer.append(#""}}"# as StaticString)
        }
    }

    private func errorText(_ message: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        scanned.errorMessage.isAbsent
            ? UnsafeRawBufferPointer(start: nil, count: 0) : scanned.errorMessage.bytes(in: message)
    }

    // MARK: Streams

    /// Writes the rejection of a stream. The client only reads stream messages for it, so the stream starts and ends with the
    /// error.
    private mutating func refusal(
        of stream: RequestedStream, _ callID: [UInt8], text: UnsafeRawBufferPointer
    ) -> [[UInt8]] {
        // A number that the server never assigns.
        refusedCount += 1
        let streamID = names.toClient(Array("s\(1 << 47 + refusedCount)".utf8))
        let start = Self.makeBytes { buffer in
            head(streamID, callID, &buffer)
            JSONString.append(stream.actor, to: &buffer)
            buffer.append(#"},"targetIdentifier":"# as StaticString)
            JSONString.append(stream.target, to: &buffer)
            buffer.append("}}" as StaticString)
        }
        return [start, streamError(streamID, text: text)]
    }

    private mutating func streamStart(_ message: UnsafeRawBufferPointer) -> [UInt8] {
        let name = Array(scanned.streamID.bytes(in: message))
        let streamID = names.toClient(name)
        let callID = Array(scanned.callID.bytes(in: message))
        requestedStreams[callID] = nil
        // The name of a resumed stream is also its callID. A client may request another stream with the same callID.
        let isResumed = callID == name && resumed.remove(name) != nil
        return Self.makeBytes { buffer in
            head(streamID, isResumed ? streamID : callID, &buffer)
            quote(scanned.actorID, of: message, &buffer)
            buffer.append(#"},"targetIdentifier":"# as StaticString)
            quote(scanned.targetIdentifier, of: message, &buffer)
            buffer.append("}}" as StaticString)
        }
    }

    /// Returns the client's name of a stream that ends, possibly before its start.
    private mutating func ending(_ message: UnsafeRawBufferPointer) -> [UInt8] {
        let name = Array(scanned.streamID.bytes(in: message))
        resumed.remove(name)
        return names.toClient(name)
    }

    private func head(_ streamID: [UInt8], _ callID: [UInt8], _ buffer: inout ByteBuffer) {
        buffer.append(#"{"type":"streamStart","payload":{"streamID":"# as StaticString)
        quote(streamID, &buffer)
        buffer.append(#","callID":"# as StaticString)
        quote(callID, &buffer)
        buffer.append(#","actorID":{"id":"# as StaticString)
    }

    private func streamData(_ message: UnsafeRawBufferPointer) -> [UInt8] {
        Self.makeBytes { buffer in
            buffer.append(#"{"type":"streamData","payload":{"streamID":"# as StaticString)
            quote(names.toClient(Array(scanned.streamID.bytes(in: message))), &buffer)
            Self.appendValue(of: scanned, in: message, &buffer)
        }
    }

    /// The number of the form that `appendSuffix` makes, among the derived forms of shared bytes.
    package static var sharedForm: Int { -1 }

    /// Translates the part of a `streamData` message that all its subscribers share (`StreamDataEncoding`). Appends nothing if the
    /// message has no translation without its head.
    package static func appendSuffix(ofStreamData suffix: UnsafeRawBufferPointer, into buffer: inout ByteBuffer) {
        var message = ByteBuffer()
        StreamDataEncoding.appendPrefix(into: &message)
        message.append("s1" as StaticString)
        message.append(suffix)
        var scanned = ScannedEnvelope()
        guard (try? scanned.scan(message.bytes)) != nil, !scanned.data.isAbsent else { return }
        buffer.append(0x22)
        appendValue(of: scanned, in: message.bytes, &buffer)
    }

    /// Translates the part of a `streamData` message that precedes the shared one, which begins after the stream's name.
    package func streamDataHead(_ head: UnsafeRawBufferPointer) -> [UInt8] {
        Self.makeBytes { buffer in
            StreamDataEncoding.appendPrefix(into: &buffer)
            buffer.append(names.toClient(Array(head[StreamDataEncoding.prefixCount...])))
        }
    }

    private static func appendValue(
        of scanned: ScannedEnvelope, in message: UnsafeRawBufferPointer, _ buffer: inout ByteBuffer
    ) {
        buffer.append(#","sequenceNumber":"# as StaticString)
        buffer.append(decimal: scanned.sequenceNumber ?? 0)
        buffer.append(#","data":""# as StaticString)
        Base64.encode(scanned.data.bytes(in: message), into: &buffer)
        buffer.append(#"","timestamp":""# as StaticString)
        // Without the fraction.
        buffer.append(UnsafeRawBufferPointer(rebasing: scanned.timestamp.bytes(in: message).prefix(19)))
        buffer.append(#"Z"}}"# as StaticString)
    }

    private mutating func streamEnd(_ message: UnsafeRawBufferPointer) -> [UInt8] {
        let streamID = ending(message)
        let reason = StreamEndReason(rawValue: scanned.string(scanned.reason, in: message))
        return Self.makeBytes { buffer in
            buffer.append(#"{"type":"streamEnd","payload":{"streamID":"# as StaticString)
            quote(streamID, &buffer)
            buffer.append(#","reason":"# as StaticString)
            // These clients expect the reason of a closed connection.
            let known = reason == .serverDraining ? .connectionClosed : reason
            JSONString.append(known.rawValue, to: &buffer)
            buffer.append("}}" as StaticString)
        }
    }

    private func streamError(_ streamID: [UInt8], text: UnsafeRawBufferPointer) -> [UInt8] {
        Self.makeBytes { buffer in
            buffer.append(#"{"type":"streamError","payload":{"streamID":"# as StaticString)
            quote(streamID, &buffer)
            buffer.append(#","errorMessage":""# as StaticString)
            buffer.append(text)
            buffer.append(#""}}"# as StaticString)
        }
    }

    private static func makeBytes(_ body: (inout ByteBuffer) -> Void) -> [UInt8] {
        var buffer = ByteBuffer()
        body(&buffer)
        return Array(buffer.bytes)
    }
}

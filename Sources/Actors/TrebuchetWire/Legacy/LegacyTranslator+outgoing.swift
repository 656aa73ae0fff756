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
                if !scanned.result.isAbsent { Self.append(value: scanned.result.bytes(in: message), &buffer) }
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
        append(value: scanned.data.bytes(in: message), &buffer)
        buffer.append(#"","timestamp":""# as StaticString)
        // Without the fraction.
        buffer.append(UnsafeRawBufferPointer(rebasing: scanned.timestamp.bytes(in: message).prefix(19)))
        buffer.append(#"Z"}}"# as StaticString)
    }

    // MARK: Values

    /// Appends a value as base64, its dates in whole seconds.
    private static func append(value: UnsafeRawBufferPointer, _ buffer: inout ByteBuffer) {
        var (copied, at) = (0, 0)
        var whole = ByteBuffer()
        while at + DateForm.count + 2 <= value.count {
            guard isDate(value, at: at) else {
                at += 1
                continue
            }
            let fraction = at + 1 + DateForm.secondCount
            whole.append(UnsafeRawBufferPointer(rebasing: value[copied..<fraction]))
            whole.append(0x5A)
            at += 1 + DateForm.count
            copied = at
        }
        guard copied > 0 else { return Base64.encode(value, into: &buffer) }
        whole.append(UnsafeRawBufferPointer(rebasing: value[copied...]))
        Base64.encode(whole.bytes, into: &buffer)
    }

    /// Returns whether a string at an offset of JSON is a date of version 3 and not the name of a member.
    private static func isDate(_ json: UnsafeRawBufferPointer, at start: Int) -> Bool {
        let end = start + 1 + DateForm.count
        // A quote inside a string follows a backslash.
        guard json[start] == 0x22, json[end] == 0x22, start == 0 || json[start - 1] != 0x5C else { return false }
        if end + 1 < json.count, json[end + 1] == UInt8(ascii: ":") { return false }
        return zip(json[(start + 1)...], DateForm.text.utf8).allSatisfy { byte, form in
            form == UInt8(ascii: "0") ? (0x30...0x39).contains(byte) : byte == form
        }
    }

    /// The form of dates in version 3; a 0 stands for any digit.
    private enum DateForm {
        static let text = "0000-00-00T00:00:00.000Z"
        static var count: Int { 24 }
        /// The number of characters before the fraction.
        static var secondCount: Int { 19 }
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

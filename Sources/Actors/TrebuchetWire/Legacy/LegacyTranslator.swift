package import Bytes

/// Translates messages of a client of version 1 or 2 into version 3, and the messages to it into its version.
///
/// It only handles messages, without types, clock or socket. These clients do not accept fractions of seconds, and JSON does not
/// mark dates, so each string with the form of a date in version 3 loses its fraction on the way to them.
package struct LegacyTranslator {
    var scanned = ScannedEnvelope()
    /// The requested streams without a response, by callID.
    var requestedStreams: [[UInt8]: RequestedStream] = [:]
    /// The resumed streams that have other names on the server, by these names, until the response arrives. Their name is also
    /// their callID.
    var resumed: Set<[UInt8]> = []
    /// The maximum number of such streams. The start message of a further one has the server's callID.
    static let maximumResumed = 1_024
    let names: LegacyStreamNames
    /// The number of rejected streams; each gets a unique name.
    var refusedCount: UInt64 = 0

    /// The properties of a stream that its rejection must include, because the client only reads stream messages for it.
    struct RequestedStream {
        let actor: String
        let target: String

        /// The maximum length of either text in a rejection.
        static let maximumTextLength = 256
        /// The maximum number of requested streams that are recorded. A further one is rejected like a call. A stream that is
        /// answered with another callID stays recorded.
        static let most = 1_024
    }

    /// The callID of a response that belongs to no call.
    static let noCall = "00000000-0000-0000-0000-000000000000"

    /// Creates a translator.
    ///
    /// - Parameter identity: a UUID that is unique for each connection; the UUIDs of its streams are derived from it.
    package init(identity: String) { names = LegacyStreamNames(identity) }

    // MARK: From the client

    /// Returns the name in version 3 of an actor's method by its mangled name and number of arguments; nil for others.
    package typealias MethodNames = (_ actor: String, _ mangled: String, _ arguments: Int) -> String?

    /// Translates a client's message into version 3. The server reports the error.
    package mutating func incoming(
        _ message: UnsafeRawBufferPointer, into buffer: inout ByteBuffer, methodNames: MethodNames
    ) throws(EnvelopeError) {
        try scanned.scan(message)
        switch scanned.kind {
        case .invocation: try invocation(message, &buffer, methodNames)
        case .streamResume: try streamResume(message, &buffer)
        case .streamEnd: streamEnd(message, &buffer)
        case .cancel:
            buffer.append(#"{"type":"cancel","payload":{"callID":"# as StaticString)
            quote(scanned.callID, of: message, &buffer)
            buffer.append("}}" as StaticString)
        default: throw EnvelopeError("a client does not send \(scanned.kind) messages")
        }
    }

    private mutating func recordCall(_ target: String, _ actor: String, _ callID: [UInt8]) {
        guard requestedStreams.count < RequestedStream.most else { return }
        requestedStreams[callID] = RequestedStream(
            actor: actor.prefix(bytes: RequestedStream.maximumTextLength),
            target: target.prefix(bytes: RequestedStream.maximumTextLength)
        )
    }

    private mutating func invocation(
        _ message: UnsafeRawBufferPointer, _ buffer: inout ByteBuffer, _ methodNames: MethodNames
    ) throws(EnvelopeError) {
        let target = scanned.string(scanned.targetIdentifier, in: message)
        // The name of a method has labels or is mangled.
        let isStream = target.hasPrefix("observe") && !target.utf8.contains(UInt8(ascii: "("))
        let isMangled = target.hasPrefix("$s")
        let actor = isStream || isMangled ? scanned.string(scanned.actorID, in: message) : ""
        if isStream { recordCall(target, actor, Array(scanned.callID.bytes(in: message))) }
        buffer.append(#"{"type":"invocation","payload":{"callID":"# as StaticString)
        quote(scanned.callID, of: message, &buffer)
        writeAddress(
            in: message, method: isMangled ? methodNames(actor, target, scanned.arguments.count) : nil, &buffer)
        buffer.append(#","arguments":["# as StaticString)
        for (index, range) in scanned.arguments.enumerated() {
            if index > 0 { buffer.append(0x2C) }
            do throws(EnvelopeError) {
                try Self.appendValue(ofBase64: range.bytes(in: message), to: &buffer)
            } catch {
                throw callError("argument \(index + 1): \(error.message)", message)
            }
        }
        buffer.append(0x5D)
        if !scanned.genericSubstitutions.isEmpty {
            buffer.append(#","genericSubstitutions":["# as StaticString)
            for (index, name) in scanned.genericSubstitutions.enumerated() {
                if index > 0 { buffer.append(0x2C) }
                quote(name, of: message, &buffer)
            }
            buffer.append(0x5D)
        }
        if let limit = scanned.timeoutMilliseconds {
            buffer.append(#","timeoutMilliseconds":"# as StaticString)
            buffer.append(decimal: UInt64(limit))
        }
        do throws(EnvelopeError) {
            try filter(in: message, isStream: isStream, &buffer)
        } catch {
            throw callError(error.message, message)
        }
        buffer.append("}}" as StaticString)
    }

    /// Writes the request to resume a stream. The client's name of the stream becomes the `callID` of the response.
    private mutating func streamResume(
        _ message: UnsafeRawBufferPointer, _ buffer: inout ByteBuffer
    ) throws(EnvelopeError) {
        let own = Array(scanned.streamID.bytes(in: message))
        let name = names.toServer(own)
        buffer.append(#"{"type":"streamResume","payload":{"streamID":"# as StaticString)
        quote(name, &buffer)
        writeAddress(in: message, &buffer)
        buffer.append(#","lastSequence":"# as StaticString)
        buffer.append(decimal: scanned.lastSequence ?? 0)
        try filter(in: message, isStream: true, &buffer)
        buffer.append("}}" as StaticString)
        if name != own, resumed.count < Self.maximumResumed { resumed.insert(name) }
    }

    private func streamEnd(_ message: UnsafeRawBufferPointer, _ buffer: inout ByteBuffer) {
        buffer.append(#"{"type":"streamEnd","payload":{"streamID":"# as StaticString)
        quote(names.toServer(Array(scanned.streamID.bytes(in: message))), &buffer)
        buffer.append("}}" as StaticString)
    }

    /// Writes the actor and the target. Only the `id` of an older `actorID` is used.
    private func writeAddress(
        in message: UnsafeRawBufferPointer, method: String? = nil, _ buffer: inout ByteBuffer
    ) {
        buffer.append(#","actorID":"# as StaticString)
        quote(scanned.actorID, of: message, &buffer)
        buffer.append(#","targetIdentifier":"# as StaticString)
        guard let method else { return quote(scanned.targetIdentifier, of: message, &buffer) }
        JSONString.append(method, to: &buffer)
    }

    /// Writes the filter. A stream without one gets the filter that accepts everything: its client does not know patches.
    private func filter(
        in message: UnsafeRawBufferPointer, isStream: Bool, _ buffer: inout ByteBuffer
    ) throws(EnvelopeError) {
        var filter: StreamFilter?
        if !scanned.streamFilter.isAbsent { filter = try .legacy(scanned.streamFilter.bytes(in: message)) }
        guard let filter = filter ?? (isStream ? StreamFilter() : nil) else { return }
        buffer.append(#","filter":"# as StaticString)
        filter.append(to: &buffer)
    }

    private func callError(_ text: String, _ message: UnsafeRawBufferPointer) -> EnvelopeError {
        EnvelopeError(text, callID: scanned.string(scanned.callID, in: message))
    }

    /// Appends the JSON in a base64 string. It is parsed to its end: otherwise a value could end the message that contains it.
    private static func appendValue(
        ofBase64 text: UnsafeRawBufferPointer, to buffer: inout ByteBuffer
    ) throws(EnvelopeError) {
        guard text.count >= 2, text.first == 0x22 else { throw EnvelopeError("it is not a string") }
        let inner = UnsafeRawBufferPointer(rebasing: text.dropFirst().dropLast())
        let start = buffer.count
        // Foundation's encoder writes the digit "/" as "\\/".
        let isBase64 =
            inner.contains(0x5C)
            ? JSONString.unescaped(inner).withUnsafeBytes { Base64.decode($0, into: &buffer) }
            : Base64.decode(inner, into: &buffer)
        guard isBase64 else { throw EnvelopeError("it is not base64") }
        var cursor = JSONCursor(UnsafeRawBufferPointer(rebasing: buffer.bytes[start...]))
        guard cursor.peek() != 0 else { throw EnvelopeError("the value is missing") }
        _ = try cursor.value(depth: 3)
        try cursor.expectEnd()
    }

    // MARK: Parts

    /// Appends a string of a message, including its escapes.
    func quote(_ range: ByteRange, of message: UnsafeRawBufferPointer, _ buffer: inout ByteBuffer) {
        buffer.append(0x22)
        buffer.append(range.bytes(in: message))
        buffer.append(0x22)
    }

    func quote(_ name: [UInt8], _ buffer: inout ByteBuffer) {
        buffer.append(0x22)
        buffer.append(name)
        buffer.append(0x22)
    }
}

package import Bytes

/// Puts what a client of version 1 or 2 sends into version 3, and what it is sent into its own.
///
/// It knows messages alone: neither types nor a clock nor a socket. So dates inside of values stay as they are, and whoever encodes
/// values for such a client writes them in whole seconds (`DateForm`). Mangled targets stay too: version 3 has them for actors
/// without `@Trebuchet`.
package struct LegacyTranslator {
    var scanned = ScannedEnvelope()
    /// Streams that the client has asked for and has no answer of yet, by callID.
    var asked: [[UInt8]: AskedStream] = [:]
    /// Streams that the client has taken up again under names that are others here, by these, and has no answer of yet: what they are
    /// called is their callID, too.
    var resumed: Set<[UInt8]> = []
    /// Beyond so many one begins under the callID that it has here.
    static let mostResumed = 1_024
    let names: LegacyStreamNames
    /// Streams that were refused so far; each is told under a name of its own.
    var refusedCount: UInt64 = 0

    /// What a refusal has to say of a stream, because its client looks for it in the kinds of streams alone.
    struct AskedStream {
        let actor: String
        let target: String

        /// Characters of either that are told.
        static let longestText = 256
        /// Streams that are noted at once: beyond it a refusal is told as a call's. Whatever is answered under another callID than it
        /// was asked under stays noted.
        static let most = 1_024
    }

    /// The call that an answer goes to which is no call's.
    static let noCall = "00000000-0000-0000-0000-000000000000"

    /// - Parameter identity: a UUID, another one for each connection: those of its streams are made from it.
    package init(identity: String) { names = LegacyStreamNames(identity) }

    // MARK: From the client

    /// Writes a message of the client as it stands in version 3. The error is the server's to tell.
    package mutating func incoming(
        _ message: UnsafeRawBufferPointer, into buffer: inout ByteBuffer
    ) throws(EnvelopeError) {
        try scanned.scan(message)
        switch scanned.kind {
        case .invocation: try invocation(message, &buffer)
        case .streamResume: try streamResume(message, &buffer)
        case .streamEnd: streamEnd(message, &buffer)
        case .cancel:
            buffer.append(#"{"type":"cancel","payload":{"callID":"# as StaticString)
            quote(scanned.callID, of: message, &buffer)
            buffer.append("}}" as StaticString)
        default: throw EnvelopeError("a client does not send \(scanned.kind) messages")
        }
    }

    private mutating func note(_ target: String, _ actor: String, _ callID: [UInt8]) {
        guard asked.count < AskedStream.most else { return }
        asked[callID] = AskedStream(
            actor: actor.prefix(bytes: AskedStream.longestText), target: target.prefix(bytes: AskedStream.longestText)
        )
    }

    private mutating func invocation(
        _ message: UnsafeRawBufferPointer, _ buffer: inout ByteBuffer
    ) throws(EnvelopeError) {
        let target = scanned.string(scanned.targetIdentifier, in: message)
        // The name of a method has labels, or is mangled.
        if target.hasPrefix("observe"), !target.utf8.contains(UInt8(ascii: "(")) {
            note(target, scanned.string(scanned.actorID, in: message), Array(scanned.callID.bytes(in: message)))
        }
        buffer.append(#"{"type":"invocation","payload":{"callID":"# as StaticString)
        quote(scanned.callID, of: message, &buffer)
        place(in: message, &buffer)
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
            try filter(in: message, &buffer)
        } catch {
            throw callError(error.message, message)
        }
        buffer.append("}}" as StaticString)
    }

    /// The client's own name of the stream takes the place of a `callID`: it is answered under that.
    private mutating func streamResume(
        _ message: UnsafeRawBufferPointer, _ buffer: inout ByteBuffer
    ) throws(EnvelopeError) {
        let own = Array(scanned.streamID.bytes(in: message))
        let name = names.toServer(own)
        buffer.append(#"{"type":"streamResume","payload":{"streamID":"# as StaticString)
        quote(name, &buffer)
        place(in: message, &buffer)
        buffer.append(#","lastSequence":"# as StaticString)
        buffer.append(decimal: scanned.lastSequence ?? 0)
        try filter(in: message, &buffer)
        buffer.append("}}" as StaticString)
        if name != own, resumed.count < Self.mostResumed { resumed.insert(name) }
    }

    private func streamEnd(_ message: UnsafeRawBufferPointer, _ buffer: inout ByteBuffer) {
        buffer.append(#"{"type":"streamEnd","payload":{"streamID":"# as StaticString)
        quote(names.toServer(Array(scanned.streamID.bytes(in: message))), &buffer)
        buffer.append("}}" as StaticString)
    }

    /// The actor and what is asked of it. Of an older `actorID` the `id` alone counts.
    private func place(in message: UnsafeRawBufferPointer, _ buffer: inout ByteBuffer) {
        buffer.append(#","actorID":"# as StaticString)
        quote(scanned.actorID, of: message, &buffer)
        buffer.append(#","targetIdentifier":"# as StaticString)
        quote(scanned.targetIdentifier, of: message, &buffer)
    }

    private func filter(
        in message: UnsafeRawBufferPointer, _ buffer: inout ByteBuffer
    ) throws(EnvelopeError) {
        guard !scanned.streamFilter.isAbsent,
            let filter = try StreamFilter.legacy(scanned.streamFilter.bytes(in: message))
        else { return }
        buffer.append(#","filter":"# as StaticString)
        filter.append(to: &buffer)
    }

    private func callError(_ text: String, _ message: UnsafeRawBufferPointer) -> EnvelopeError {
        EnvelopeError(text, callID: scanned.string(scanned.callID, in: message))
    }

    /// Appends the JSON that a string has in base64. It is read to its end: else a value could end the message that it is put into.
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
        guard cursor.peek() != 0 else { throw EnvelopeError("there is no value") }
        _ = try cursor.value(depth: 3)
        try cursor.expectEnd()
    }

    // MARK: Parts

    /// A string as it stands in a message, with what is escaped in it.
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

internal import Bytes
package import TrebuchetActors
internal import TrebuchetWire

extension Message {
    /// Returns the message with another callID. Requires that it has one.
    package func renamed(_ callID: [UInt8]) -> [UInt8] {
        let range = envelope.pointee.callID
        let (start, end) = (Int(range.offset), Int(range.offset + range.count))
        var message: [UInt8] = []
        message.reserveCapacity(bytes.count + callID.count)
        message += bytes[..<start]
        message += callID
        message += bytes[end...]
        return message
    }

    /// Calls `body` with the same call as a repeat.
    package func withRepeat(_ body: (borrowing Message) -> Void) {
        var envelope = ScannedEnvelope()
        asRepeat.withUnsafeBytes { bytes in
            guard (try? envelope.scan(bytes)) != nil else { return }
            withUnsafePointer(to: envelope) { body(Message(bytes: bytes, envelope: $0)) }
        }
    }

    private var asRepeat: [UInt8] {
        var buffer = ByteBuffer()
        EnvelopeWriter.invocation(
            callID: text(envelope.pointee.callID), actorID: actorName, target: target,
            arguments: envelope.pointee.arguments.map { Array(bytes($0)) },
            genericSubstitutions: envelope.pointee.genericSubstitutions.map { text($0) },
            timeoutMilliseconds: envelope.pointee.timeoutMilliseconds,
            session: envelope.pointee.session.isAbsent ? nil : text(envelope.pointee.session),
            traceparent: trace?.traceparent,
            metadata: hasMetadata ? Array(bytes(envelope.pointee.metadata)) : nil, isRepeat: true, into: &buffer)
        return Array(buffer.bytes)
    }
}

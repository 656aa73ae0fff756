internal import TrebuchetWire

/// A message during its processing: its bytes and the scanned envelope. It is passed down and must not be stored; a message
/// that has to wait is copied to a `OwnedMessage`.
package struct Message: ~Copyable {
    package let bytes: UnsafeRawBufferPointer
    package let envelope: UnsafePointer<ScannedEnvelope>

    package init(bytes: UnsafeRawBufferPointer, envelope: UnsafePointer<ScannedEnvelope>) {
        self.bytes = bytes
        self.envelope = envelope
    }

    package var kind: EnvelopeKind { envelope.pointee.kind }

    /// Returns the bytes of a member.
    @inline(__always)
    package func bytes(_ range: ByteRange) -> UnsafeRawBufferPointer { range.bytes(in: bytes) }

    /// Returns the text of a string member.
    package func text(_ range: ByteRange) -> String {
        // Does not call a method of the envelope, which would copy it.
        range.isAbsent ? "" : JSONString.text(bytes(range), isEscaped: range.isEscaped)
    }

    package var callID: UnsafeRawBufferPointer { bytes(envelope.pointee.callID) }
    package var actorName: String { text(envelope.pointee.actorID) }
    package var target: String { text(envelope.pointee.targetIdentifier) }
    /// The trace that the sender is part of. Nil without one, and for a text that does not follow the W3C format exactly.
    package var trace: TraceContext? {
        let member = envelope.pointee.traceparent
        return member.isAbsent || member.isEscaped ? nil : TraceContext(bytes(member))
    }
}

/// A message that waits for its actor or for another reactor; it owns its bytes.
package final class OwnedMessage: Sendable {
    private let bytes: [UInt8]
    private let envelope: ScannedEnvelope

    package init(_ message: borrowing Message) {
        bytes = Array(message.bytes)
        envelope = message.envelope.pointee
    }

    package var byteCount: Int { bytes.count }

    /// Passes the message to a closure.
    package func withMessage<Result>(_ body: (borrowing Message) throws -> Result) rethrows -> Result {
        try withUnsafePointer(to: envelope) { envelope in
            try bytes.withUnsafeBytes { try body(Message(bytes: $0, envelope: envelope)) }
        }
    }
}

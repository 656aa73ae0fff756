internal import TrebuchetWire

/// A message in hand: its bytes, and what was found in them. It is handed down while it is handled, and kept by nobody; what has
/// to wait is a `KeptMessage`.
package struct Message: ~Copyable {
    package let bytes: UnsafeRawBufferPointer
    package let envelope: UnsafePointer<ScannedEnvelope>

    package init(bytes: UnsafeRawBufferPointer, envelope: UnsafePointer<ScannedEnvelope>) {
        self.bytes = bytes
        self.envelope = envelope
    }

    package var kind: EnvelopeKind { envelope.pointee.kind }

    /// The bytes of a member.
    @inline(__always)
    package func bytes(_ range: ByteRange) -> UnsafeRawBufferPointer { range.bytes(in: bytes) }

    /// The text of a string.
    package func text(_ range: ByteRange) -> String {
        // Not asked of the envelope, which would be copied for it.
        range.isAbsent ? "" : JSONString.text(bytes(range), isEscaped: range.isEscaped)
    }

    package var callID: UnsafeRawBufferPointer { bytes(envelope.pointee.callID) }
    package var actorName: String { text(envelope.pointee.actorID) }
    package var target: String { text(envelope.pointee.targetIdentifier) }
    /// The trace that its sender says it is part of. Nil without one, and for any text that is not just as the W3C wants it.
    package var trace: TraceContext? {
        let member = envelope.pointee.traceparent
        return member.isAbsent || member.isEscaped ? nil : TraceContext(bytes(member))
    }
}

/// A message that waits: for its actor to be made, or for another reactor.
package final class KeptMessage: Sendable {
    private let bytes: [UInt8]
    private let envelope: ScannedEnvelope

    package init(_ message: borrowing Message) {
        bytes = Array(message.bytes)
        envelope = message.envelope.pointee
    }

    /// Takes the message in hand again.
    package func withMessage<Result>(_ body: (borrowing Message) throws -> Result) rethrows -> Result {
        try withUnsafePointer(to: envelope) { envelope in
            try bytes.withUnsafeBytes { try body(Message(bytes: $0, envelope: envelope)) }
        }
    }
}

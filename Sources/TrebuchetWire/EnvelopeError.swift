/// A message that is no envelope.
package struct EnvelopeError: Error, Sendable, Equatable {
    package var code: ErrorCode { .malformedEnvelope }
    /// What is wrong, and where.
    package let message: String
    /// The call that the message was about, as far as it could be read.
    package let callID: String?

    package init(_ message: String, callID: String? = nil) {
        self.message = message
        self.callID = callID
    }
}

/// The outcome of a failed call, by its name on the wire.
package struct ErrorCode: RawRepresentable, Hashable, Sendable {
    package let rawValue: String

    package init(rawValue: String) { self.rawValue = rawValue }

    package static let actorNotFound = ErrorCode(rawValue: "actorNotFound")
    package static let methodNotFound = ErrorCode(rawValue: "methodNotFound")
    package static let invalidArguments = ErrorCode(rawValue: "invalidArguments")
    package static let unauthenticated = ErrorCode(rawValue: "unauthenticated")
    package static let unauthorized = ErrorCode(rawValue: "unauthorized")
    package static let rateLimited = ErrorCode(rawValue: "rateLimited")
    package static let timeout = ErrorCode(rawValue: "timeout")
    package static let cancelled = ErrorCode(rawValue: "cancelled")
    package static let unavailable = ErrorCode(rawValue: "unavailable")
    package static let unknownOutcome = ErrorCode(rawValue: "unknownOutcome")
    package static let overflow = ErrorCode(rawValue: "overflow")
    package static let application = ErrorCode(rawValue: "application")
    package static let `internal` = ErrorCode(rawValue: "internal")
    package static let malformedEnvelope = ErrorCode(rawValue: "malformedEnvelope")
}

/// The reason of a stream's end, by its name on the wire.
package struct StreamEndReason: RawRepresentable, Hashable, Sendable {
    package let rawValue: String

    package init(rawValue: String) { self.rawValue = rawValue }

    package static let completed = StreamEndReason(rawValue: "completed")
    package static let actorTerminated = StreamEndReason(rawValue: "actorTerminated")
    package static let clientUnsubscribed = StreamEndReason(rawValue: "clientUnsubscribed")
    package static let connectionClosed = StreamEndReason(rawValue: "connectionClosed")
    package static let error = StreamEndReason(rawValue: "error")
    package static let serverDraining = StreamEndReason(rawValue: "serverDraining")
}

/// An error: a message is not a valid envelope.
package struct EnvelopeError: Error, Sendable, Equatable {
    package var code: ErrorCode { .malformedEnvelope }
    /// The problem and its location.
    package let message: String
    /// The call of the message, if it could be read.
    package let callID: String?

    package init(_ message: String, callID: String? = nil) {
        self.message = message
        self.callID = callID
    }
}

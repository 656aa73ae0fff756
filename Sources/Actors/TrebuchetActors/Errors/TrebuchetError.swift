public import Distributed
package import TrebuchetWire

/// The error of a call or stream.
///
/// An error that the actor's method throws arrives with its type if it is `Codable` and known to the client: named by
/// `throws(BankError)`, or registered with `client.register(errors:)`. Every other error arrives as a `TrebuchetError`.
public struct TrebuchetError: DistributedActorSystemError, Sendable, CustomStringConvertible, Equatable {
    /// The kind of an error. Later versions may add codes.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        package let wire: ErrorCode

        package init(_ wire: ErrorCode) { self.wire = wire }

        /// No actor is exposed under the name.
        public static let actorNotFound = Code(.actorNotFound)
        /// The actor has no such method or stream.
        public static let methodNotFound = Code(.methodNotFound)
        /// The arguments are too few, too many, or of other types.
        public static let invalidArguments = Code(.invalidArguments)
        /// The connection has no authenticated principal, and the call or stream requires one.
        public static let unauthenticated = Code(.unauthenticated)
        /// The principal is not authorized for the call or stream.
        public static let unauthorized = Code(.unauthorized)
        /// A limit on calls or streams is reached. A later attempt may succeed: see `retryAfter`.
        public static let rateLimited = Code(.rateLimited)
        /// The deadline passed before the response arrived. The call may have had its effect.
        public static let timeout = Code(.timeout)
        /// The caller's task was cancelled. The call may have had its effect.
        public static let cancelled = Code(.cancelled)
        /// There is no connection to the server, so the call was not sent.
        public static let unavailable = Code(.unavailable)
        /// The connection broke before the response arrived, the server could not store the changes of the call, or it refused
        /// the repeat of a call that was sent before. The call may have had its effect.
        public static let unknownOutcome = Code(.unknownOutcome)
        /// A stream without conflation has lost updates: the subscriber was too slow or disconnected for too long.
        public static let overflow = Code(.overflow)
        /// The actor's method threw an error.
        public static let application = Code(.application)
        /// A fault of the framework or of the server's configuration.
        public static let `internal` = Code(.internal)

        public var description: String { wire.rawValue }
    }

    /// The kind of the error.
    public let code: Code
    /// The description for a log. Do not parse it; its wording may change.
    public let message: String
    /// With `.application`: the name of the thrown error's type, such as `Bank.BankError`.
    public let type: String?
    /// With `.application`: the thrown error as JSON, if it is `Codable`.
    public let data: [UInt8]?

    /// The time until the next attempt may succeed: with `.rateLimited`, or `.unknownOutcome` of a repeated call, after a rate was
    /// exceeded; with `.unavailable`, if the server knows it. Nil if it is unknown, or if another call or stream has to end first.
    public let retryAfter: Duration?

    /// Creates an error. An actor's method may throw it to reject a call in the framework's terms; the client receives it
    /// unchanged.
    public init(
        _ code: Code, _ message: String, type: String? = nil, data: [UInt8]? = nil, retryAfter: Duration? = nil
    ) {
        self.retryAfter = retryAfter
        self.code = code
        self.message = message
        self.type = type
        self.data = data
    }

    /// Returns the error for an actor that moved to another node before the waiting operation started. The waiter retries at
    /// the other node. The mark is never sent in a message, so neither an actor nor a peer can set it.
    package static func moved(_ message: String) -> TrebuchetError {
        var error = TrebuchetError(.unavailable, message)
        error.isOfMovedActor = true
        return error
    }

    package private(set) var isOfMovedActor = false

    /// Returns the error of a call whose activation ended before its change was acknowledged. The server repeats an
    /// `@Idempotent` call at the next owner node, which knows whether the call was executed. The mark is never sent in a
    /// message.
    package static func lostActivation(_ message: String) -> TrebuchetError {
        var error = TrebuchetError(.unknownOutcome, message)
        error.isOfLostActivation = true
        return error
    }

    package private(set) var isOfLostActivation = false

    /// The error of a call that was refused after it, or an earlier attempt, had been sent: that may have been executed, or may
    /// still arrive. So a refusal becomes `unknownOutcome`; other errors are unchanged.
    package var ofSentCall: TrebuchetError {
        guard !isOfMovedActor else { return self }
        switch code {
        case .actorNotFound, .methodNotFound, .unauthenticated, .unauthorized, .rateLimited, .unavailable:
            return TrebuchetError(
                .unknownOutcome,
                "the call was sent before and may have been executed; then it was refused (\(code)): \(message)",
                retryAfter: retryAfter)
        default: return self
        }
    }

    public var description: String { "\(code): \(message)" }
}

public import Distributed
package import TrebuchetWire

/// The outcome of one call or stream that did not succeed.
///
/// An error that the actor's method throws arrives as itself when it is `Codable` and known to the client: named by
/// `throws(BankError)`, or registered with `client.register(errors:)`. Everything else arrives as this.
public struct TrebuchetError: DistributedActorSystemError, Sendable, CustomStringConvertible, Equatable {
    /// What kind of outcome it is; new kinds may come.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        package let wire: ErrorCode

        package init(_ wire: ErrorCode) { self.wire = wire }

        /// Nobody has exposed an actor of that name.
        public static let actorNotFound = Code(.actorNotFound)
        /// The actor has no such method or stream.
        public static let methodNotFound = Code(.methodNotFound)
        /// The arguments are too few, too many, or of other types.
        public static let invalidArguments = Code(.invalidArguments)
        /// Nobody is signed in over this connection, and the call or stream is for those who are.
        public static let unauthenticated = Code(.unauthenticated)
        /// Who is signed in may not do this.
        public static let unauthorized = Code(.unauthorized)
        /// A limit on calls or streams is reached; later it may work: see `retryAfter`.
        public static let rateLimited = Code(.rateLimited)
        /// The deadline passed before the answer came. The call may have had its effect.
        public static let timeout = Code(.timeout)
        /// The caller's task was cancelled. The call may have had its effect.
        public static let cancelled = Code(.cancelled)
        /// There is no connection to the server, so the call was not sent.
        public static let unavailable = Code(.unavailable)
        /// The connection broke before the answer came, or the server could not write what the call changed. The call may
        /// have had its effect.
        public static let unknownOutcome = Code(.unknownOutcome)
        /// Updates of a stream that leaves nothing out were missed: somebody was too slow, or away for too long.
        public static let overflow = Code(.overflow)
        /// The actor's method threw an error.
        public static let application = Code(.application)
        /// A fault of the framework or of the server's configuration.
        public static let `internal` = Code(.internal)

        public var description: String { wire.rawValue }
    }

    /// What kind of outcome it is.
    public let code: Code
    /// What happened, in words for a log; do not take it apart, it may change.
    public let message: String
    /// With `.application`: the name of the thrown error's type, as `Bank.BankError`.
    public let type: String?
    /// With `.application`: the thrown error in JSON, when it is `Codable`.
    public let data: [UInt8]?

    /// With `.rateLimited`, when a rate was exceeded: how long until one more may come. Nil where waiting alone does not help:
    /// something has to end first.
    public let retryAfter: Duration?

    /// For an actor that refuses something in the framework's own words: when a method throws it, it arrives at the client as it is.
    public init(
        _ code: Code, _ message: String, type: String? = nil, data: [UInt8]? = nil, retryAfter: Duration? = nil
    ) {
        self.retryAfter = retryAfter
        self.code = code
        self.message = message
        self.type = type
        self.data = data
    }

    /// That an actor went to another node before what waited for it was begun: who waits goes there. It is in no message, so nobody else
    /// can say so, be it an actor or a peer.
    package static func moved(_ message: String) -> TrebuchetError {
        var error = TrebuchetError(.unavailable, message)
        error.isOfMovedActor = true
        return error
    }

    package private(set) var isOfMovedActor = false

    /// The error of a call whose activation was given up before its change was acknowledged. The server repeats an `@Idempotent` call at
    /// the next owner, which knows whether it was done. As above, no message carries the mark.
    package static func lostActivation(_ message: String) -> TrebuchetError {
        var error = TrebuchetError(.unknownOutcome, message)
        error.isOfLostActivation = true
        return error
    }

    package private(set) var isOfLostActivation = false

    public var description: String { "\(code): \(message)" }
}

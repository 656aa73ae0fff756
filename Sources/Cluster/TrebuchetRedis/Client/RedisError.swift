/// The failure of a command, which the server may have executed.
package enum RedisError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The command was not sent and had no effect.
    case unavailable(String)
    /// The command was sent, and its reply did not arrive.
    case unknownOutcome(String)
    /// Too many commands wait; this one was not sent.
    case overloaded(String)
    /// The server replied with an error.
    case reply(RedisErrorReply)
    /// The client was closed before the command was sent.
    case closed

    package var description: String {
        switch self {
        case .unavailable(let reason), .unknownOutcome(let reason), .overloaded(let reason): reason
        case .reply(let reply): "the server replied: \(reply)"
        case .closed: "the client of the Redis server was closed"
        }
    }
}

/// Receives the result of a command; called on the client's reactor, once.
package typealias RedisCompletion = @Sendable (Result<RESPValue, RedisError>) -> Void

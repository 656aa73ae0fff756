/// What a server did not do, or perhaps did not do.
package enum RedisError: Error, Equatable, Sendable, CustomStringConvertible {
    /// It was not asked; nothing came of the command.
    case unavailable(String)
    /// It was asked, and its answer did not come.
    case unknownOutcome(String)
    /// Too much waits already; it was not asked.
    case overloaded(String)
    /// It answered with an error.
    case reply(RedisReply)
    /// The client was closed before it asked.
    case closed

    package var description: String {
        switch self {
        case .unavailable(let reason), .unknownOutcome(let reason), .overloaded(let reason): reason
        case .reply(let reply): "the server answered: \(reply)"
        case .closed: "the client of the Redis server was closed"
        }
    }
}

/// What becomes of a command; called on the client's reactor, once.
package typealias RedisCompletion = @Sendable (Result<RESPValue, RedisError>) -> Void

/// How a stream of states ended.
public enum StreamOutcome: Sendable, Equatable {
    /// In order: the server or this side ended it.
    case completed
    /// Otherwise: the connection was closed, the actor went, or the server reported an error.
    case failed(TrebuchetError)
}

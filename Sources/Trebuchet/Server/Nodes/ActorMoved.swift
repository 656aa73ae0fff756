internal import TrebuchetActors

/// What is wrong when an actor has gone to another node while something waited for it here: nothing was begun.
enum ActorMoved {
    private static let type = "ActorMoved"

    static var error: TrebuchetError {
        TrebuchetError(.unavailable, "the actor has just moved to another node; try again", type: type)
    }

    static func isIt(_ error: any Error) -> Bool {
        guard let error = error as? TrebuchetError else { return false }
        return error.code == .unavailable && error.type == type
    }
}

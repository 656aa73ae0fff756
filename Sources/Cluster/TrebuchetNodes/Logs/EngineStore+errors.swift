internal import TrebuchetActors
internal import TrebuchetCluster

/// The errors for callers when the coordination store fails.
extension EngineStore {
    /// The error while this node has no lease for the slot of an actor: another node may own it, or no node yet.
    static func isNotOwned(_ name: String) -> StateStoreError {
        StateStoreError(.conflict, "this node does not own actor '\(name)'")
    }

    /// The error of a write under an earlier lease: this or another node has owned the actor since.
    static func leaseEnded(_ name: String) -> StateStoreError {
        StateStoreError(.conflict, "the lease under which actor '\(name)' was activated has ended")
    }

    /// The error of a write that does not continue the log.
    static func isContinued(_ name: String) -> StateStoreError {
        StateStoreError(.conflict, "the log of actor '\(name)' was continued by another activation")
    }

    /// The error while the lease of an owned slot waits for its renewal: unlike `isNotOwned`, the caller retries here.
    static func isRenewing(_ name: String) -> StateStoreError {
        StateStoreError(.unavailable, "the lease of actor '\(name)' is not renewed yet")
    }

    static func failure(_ error: ClusterEngineError, _ partition: ActorLog) -> StateStoreError {
        let code: StateStoreError.Code =
            switch error.code {
            case .tooLarge: .tooLarge
            case .closed: .closed
            case .unavailable, .unknownOutcome, .overloaded: .unavailable
            default: .failed
            }
        return StateStoreError(code, error.textForClients)
    }
}

extension ClusterEngineError {
    /// The message without the address of the coordination store and its texts, which are in the log of the node.
    var textForClients: String {
        switch code {
        case .unavailable: "the coordination store is unreachable"
        case .unknownOutcome: "the coordination store did not respond"
        case .overloaded: "the queue to the coordination store is full"
        case .tooLarge: "the write exceeds the size limit of the coordination store"
        case .closed: "the node has left the cluster"
        case .dataLoss: "the coordination store has lost data"
        default: "the coordination store failed (\(code))"
        }
    }
}

internal import TrebuchetActors
internal import TrebuchetCluster

/// The errors for callers when the coordination store fails.
extension EngineStore {
    static func elsewhere(_ name: String) -> StateStoreError {
        StateStoreError(.conflict, "actor '\(name)' is owned by another node or is being handed off")
    }

    /// The error while the lease of an owned slot waits for its renewal: unlike `elsewhere`, the caller retries here.
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

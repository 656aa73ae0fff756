internal import TrebuchetActors
internal import TrebuchetCluster

/// What callers are told of an engine that fails.
extension EngineStore {
    static func elsewhere(_ name: String) -> StateStoreError {
        StateStoreError(.conflict, "another node owns actor '\(name)' now, or is about to")
    }

    static func failure(_ error: ClusterEngineError, _ partition: Partition) -> StateStoreError {
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
    /// Without the address of the engine and its own words: those are in the log of the node.
    var textForClients: String {
        switch code {
        case .unavailable: "the engine of the cluster is out of reach"
        case .unknownOutcome: "the engine of the cluster did not answer"
        case .overloaded: "too much waits for the engine of the cluster already"
        case .tooLarge: "it is larger than the engine of the cluster takes"
        case .closed: "the node has left the cluster"
        case .dataLoss: "the engine of the cluster has lost what it kept"
        default: "the engine of the cluster has failed (\(code))"
        }
    }
}

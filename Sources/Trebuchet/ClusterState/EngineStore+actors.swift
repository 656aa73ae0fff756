internal import TrebuchetActors

/// What the log of one actor has.
extension EngineStore {
    func values(of actor: String, in namespace: String) async throws(StateStoreError) -> [String: [UInt8]] {
        try await contents(of: actor).values(in: namespace)
    }

    func calls(of actor: String) async throws(StateStoreError) -> EarlierCalls {
        try await contents(of: actor).earlierCalls
    }
}

internal import Synchronization
package import Trebuchet

extension SQLiteEngine: PlacedEngine {
    package func checkPlace() async throws(StateStoreError) {
        _ = try await store.get([StateKey("trebuchet.health", "probe")])
        if let failure = failedWrite.withLock({ $0 }) { throw failure }
        try await (store as? any PlacedStore)?.checkPlace()
    }
}

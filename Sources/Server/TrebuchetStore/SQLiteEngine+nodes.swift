internal import Synchronization
internal import Trebuchet
public import TrebuchetCluster

/// The state of this process only: live nodes, messages, and the check of the file's path.
extension SQLiteEngine {
    /// Announces a node, which is live for this duration; it must announce itself again before that.
    public func renewNode(_ node: ClusterNode, info: [UInt8], duration: Duration) async throws(ClusterEngineError) {
        try await live.renewNode(node, info: info, duration: duration)
    }

    /// Removes a node at once.
    public func removeNode(_ node: ClusterNode) async throws(ClusterEngineError) { try await live.removeNode(node) }

    /// Returns the live nodes, in the order of their names.
    public func nodes() async throws(ClusterEngineError) -> [LiveNode] { try await live.nodes() }

    /// Returns the generation, one per process: its nodes share the store for its lifetime.
    public func generation() async throws(ClusterEngineError) -> String? { try await live.generation() }

    /// Begins the generation of the process.
    public func createGeneration() async throws(ClusterEngineError) -> String { try await live.createGeneration() }

    /// Subscribes to the entries appended to a log.
    public func subscribeToLog(
        _ log: ClusterLog, _ receive: @escaping @Sendable (LogEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription { try await live.subscribeToLog(log, receive) }

    // MARK: Messages

    /// Subscribes to the messages to a node.
    public func subscribeToInbox(
        of node: ClusterNode, _ receive: @escaping @Sendable (InboxEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription { try await live.subscribeToInbox(of: node, receive) }

    /// Delivers a message to the subscribers of the node; false if there are none.
    public func sendMessage(_ message: [UInt8], to node: ClusterNode) async throws(ClusterEngineError) -> Bool {
        try await live.sendMessage(message, to: node)
    }

    /// Ends all subscriptions, and fails later requests. The store stays open.
    public func close() async { await live.close() }
}

extension SQLiteEngine: FileBackedEngine {
    package func checkPath() async throws(ClusterEngineError) {
        do throws(StateStoreError) {
            _ = try await store.get([StateKey("trebuchet.health", "probe")])
            if let failure = failedWrite.withLock({ $0 }) { throw failure }
            try await (store as? any FileBackedStore)?.checkFileLocation()
        } catch {
            throw ClusterEngineError(.unavailable, "\(error)")
        }
    }
}

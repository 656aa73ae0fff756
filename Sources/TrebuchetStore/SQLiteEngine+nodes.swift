internal import Synchronization
package import Trebuchet
public import TrebuchetCluster

/// The state of this process only: live nodes, messages, and the check of the file's path.
extension SQLiteEngine {
    /// Announces a node, which is live for this duration; it must announce itself again before that.
    public func announce(_ node: ClusterNode, info: [UInt8], lasting: Duration) async throws(ClusterEngineError) {
        try await live.announce(node, info: info, lasting: lasting)
    }

    /// Removes a node at once.
    public func withdraw(_ node: ClusterNode) async throws(ClusterEngineError) { try await live.withdraw(node) }

    /// Returns the live nodes, in the order of their names.
    public func nodes() async throws(ClusterEngineError) -> [LiveNode] { try await live.nodes() }

    /// Returns the generation, one per process: its nodes share the store for its lifetime.
    public func generation() async throws(ClusterEngineError) -> String? { try await live.generation() }

    /// Begins the generation of the process.
    public func beginGeneration() async throws(ClusterEngineError) -> String { try await live.beginGeneration() }

    /// Subscribes to the entries appended to a log.
    public func watch(
        _ log: ClusterLog, _ receive: @escaping @Sendable (LogEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription { try await live.watch(log, receive) }

    // MARK: Messages

    /// Subscribes to the messages to a node.
    public func listen(
        as node: ClusterNode, _ receive: @escaping @Sendable (InboxEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription { try await live.listen(as: node, receive) }

    /// Delivers a message to the subscribers of the node; false if there are none.
    public func send(_ message: [UInt8], to node: ClusterNode) async throws(ClusterEngineError) -> Bool {
        try await live.send(message, to: node)
    }

    /// Ends all subscriptions, and fails later requests. The store stays open.
    public func close() async { await live.close() }
}

extension SQLiteEngine: FileBackedEngine {
    package func checkPlace() async throws(StateStoreError) {
        _ = try await store.get([StateKey("trebuchet.health", "probe")])
        if let failure = failedWrite.withLock({ $0 }) { throw failure }
        try await (store as? any FileBackedStore)?.checkPlace()
    }
}

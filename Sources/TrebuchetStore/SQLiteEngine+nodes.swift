internal import Synchronization
package import Trebuchet
public import TrebuchetCluster

/// What is this process's alone: which nodes live, what is sent, and whether the file is where it was.
extension SQLiteEngine {
    /// A node lives for so long from now; again before that is over.
    public func announce(_ node: ClusterNode, info: [UInt8], lasting: Duration) async throws(ClusterEngineError) {
        try await live.announce(node, info: info, lasting: lasting)
    }

    /// The node is forgotten at once.
    public func withdraw(_ node: ClusterNode) async throws(ClusterEngineError) { try await live.withdraw(node) }

    /// The nodes that live now, in the order of their names.
    public func nodes() async throws(ClusterEngineError) -> [LiveNode] { try await live.nodes() }

    /// One for each process: nodes of it share the store as long as it runs.
    public func generation() async throws(ClusterEngineError) -> String? { try await live.generation() }

    /// Begins that of the process.
    public func beginGeneration() async throws(ClusterEngineError) -> String { try await live.beginGeneration() }

    /// Listens to what is appended to a log.
    public func watch(
        _ log: ClusterLog, _ receive: @escaping @Sendable (LogEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription { try await live.watch(log, receive) }

    // MARK: Messages

    /// Listens to what is sent to a node.
    public func listen(
        as node: ClusterNode, _ receive: @escaping @Sendable (InboxEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription { try await live.listen(as: node, receive) }

    /// Calls those who listen at the node; false when nobody does.
    public func send(_ message: [UInt8], to node: ClusterNode) async throws(ClusterEngineError) -> Bool {
        try await live.send(message, to: node)
    }

    /// Ends all subscriptions, and all that is asked from now on. The store stays open.
    public func close() async { await live.close() }
}

extension SQLiteEngine: PlacedEngine {
    package func checkPlace() async throws(StateStoreError) {
        _ = try await store.get([StateKey("trebuchet.health", "probe")])
        if let failure = failedWrite.withLock({ $0 }) { throw failure }
        try await (store as? any PlacedStore)?.checkPlace()
    }
}

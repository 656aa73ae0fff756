internal import Networking
public import Trebuchet
package import TrebuchetCluster

extension TrebuchetServer {
    /// Creates a server that is a cluster node and does not listen yet.
    ///
    /// - Parameters:
    ///   - reactors: The number of threads for connections and actors; by default the number of processor cores.
    ///   - access: Authentication and authorization, as for a server without a cluster.
    ///   - store: The store of the states marked `@StreamedState(persisted: true)` of exposed actors, except those with
    ///     `placement: .cluster`. Without one, the default, these states are only in memory, which the node logs.
    ///   - cluster: The membership that makes it a cluster node; nil for none. The coordination store has the persisted states of
    ///     actors with `placement: .cluster`, from which the next owner of such an actor loads them. The states of all other actors
    ///     are in `store`.
    ///   - showsErrorText: True to send text and type of non-`Codable` errors to callers, for development.
    ///   - log: The event handler that writes the log: a `ConsoleLog` by default, for operators a `ServerLog`, or nil.
    public convenience init(
        transport: ServerTransport, reactors: Int? = nil, limits: ServerLimits = ServerLimits(),
        access: AccessPolicy = .open, store: (any StateStore)? = nil, cluster: ClusterMembership?,
        showsErrorText: Bool = false, log: (any ServerEventHandler)? = ConsoleLog()
    ) {
        self.init(
            transport: transport, on: .forServer(count: reactors), limits: limits, access: access, store: store,
            routedBy: cluster.map { membership in { ClusterRouter(membership, events: $0, log: $1) } },
            showsErrorText: showsErrorText, log: log)
    }

    /// Requests an orderly stop of a cluster node, like SIGTERM; returns false if the node is not reachable.
    package static func stop(_ node: ClusterNode, at engine: any ClusterEngine) async throws(ClusterEngineError) -> Bool
    {
        let sender = try ClusterNode(name: "operator")
        let message = NodeMessage(
            from: sender.description, number: 1, NodeMessage.Epochs(sender: 1, receiver: 0),
            [NodeFrame(.stop, channelID: 0)])
        return try await engine.sendMessage(message.bytes, to: node)
    }
}

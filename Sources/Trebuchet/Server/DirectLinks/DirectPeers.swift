internal import TrebuchetCluster

/// What the ends of direct links ask of the node that has them. From any thread.
protocol DirectPeers: AnyObject, Sendable {
    var node: ClusterNode { get }
    /// What a node that lives has told of itself, of this one too; nil when it cannot be reached directly.
    func announcement(of node: ClusterNode) -> NodeAnnouncement?
    /// The number of the last message of a node's that was handled, however it came.
    func handled(from node: ClusterNode) -> UInt64
    /// Handles a message that a node has sent; false for what it would not have sent.
    func receive(_ message: [UInt8], from node: ClusterNode) -> Bool
    /// What was sent to a node last may have arrived, or not.
    func mayHaveLost(_ node: ClusterNode)
}

/// The name in the certificate of a cluster node, such as `east-1.5f0c….trebuchet-node`.
///
/// It has the form of a DNS name, so that OpenSSL compares it during the handshake, but it is never resolved. A certificate
/// names the node and its cluster instead of a host: the addresses of nodes change, and the coordination store announces them.
/// A host name would prove less, because another cluster or program may have run at the same address.
package struct NodeCertificateName: Hashable, Sendable {
    /// The last part of all names; it is not a registered top-level domain.
    static let domain = "trebuchet-node"

    /// The name of the node, without its incarnation.
    package let node: String
    /// The random identifier of the cluster, made with its authority: one part, without dots.
    package let cluster: String

    package init(node: String, cluster: String) {
        self.node = node
        self.cluster = cluster
    }

    /// Parses a name; nil if it is not the name of a node.
    package init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count >= 3, parts[parts.count - 1] == Self.domain else { return nil }
        self.init(node: parts.dropLast(2).joined(separator: "."), cluster: String(parts[parts.count - 2]))
        guard !node.isEmpty, !cluster.isEmpty else { return nil }
    }

    /// The name as it is in the certificate.
    package var text: String { "\(node)\(Self.suffix(ofCluster: cluster))" }

    /// The end of the names of all nodes of a cluster; with its leading dot OpenSSL accepts any name before it.
    static func suffix(ofCluster cluster: String) -> String { ".\(cluster).\(domain)" }
}

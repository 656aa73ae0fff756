/// The address at which a cluster node accepts direct links from other nodes, separate from its client address.
public struct NodeAddress: Hashable, Sendable {
    /// A host name or address of this machine that the other nodes can reach.
    public let host: String
    /// The port; 0 selects a free one, which is announced to the other nodes.
    public let port: Int

    /// Creates an address. Connections to it use mutual TLS; only nodes of the cluster are accepted.
    public init(host: String, port: Int) {
        self.host = host
        self.port = port
    }
}

/// The certificate files of a node, in PEM format, as `trebuchet cluster init` writes them.
public struct NodeCertificateFiles: Hashable, Sendable {
    /// The path of the node's certificate, followed by the intermediate certificates. Its DNS name is
    /// `NODE.CLUSTER.trebuchet-node`, in which `CLUSTER` is the same for all nodes.
    public var certificateChainFile: String
    /// The path of the certificate's private key, without a passphrase.
    public var privateKeyFile: String
    /// The path of the cluster's certificate authorities: those that issued the certificates of the other nodes.
    public var authorityFile: String

    /// Creates settings from file paths.
    public init(certificateChainFile: String, privateKeyFile: String, authorityFile: String) {
        self.certificateChainFile = certificateChainFile
        self.privateKeyFile = privateKeyFile
        self.authorityFile = authorityFile
    }
}

/// The announcement of a node to the other nodes through the engine: its address.
struct NodeAnnouncement: Equatable, Sendable {
    /// Version 1 had the key of a handshake without TLS. Nodes of different versions exchange messages through the coordination
    /// store.
    private static let version: UInt8 = 2

    let address: NodeAddress

    init(_ address: NodeAddress) { self.address = address }

    var bytes: [UInt8] {
        var bytes: [UInt8] = [Self.version]
        BinaryFields.append(UInt16(address.port), to: &bytes)
        BinaryFields.append(address.host.utf8, to: &bytes)
        return bytes
    }

    /// Parses an announcement; nil if it is invalid.
    init?(_ bytes: [UInt8]) {
        var rest = bytes[...]
        guard rest.popFirst() == Self.version, let port = BinaryFields.number(UInt16.self, &rest), port > 0,
            let host = BinaryFields.text(&rest), !host.isEmpty
        else { return nil }
        self.init(NodeAddress(host: host, port: Int(port)))
    }
}

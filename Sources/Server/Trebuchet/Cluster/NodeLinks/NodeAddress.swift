/// The address at which a cluster node accepts direct links from other nodes, separate from its client address.
public struct NodeAddress: Hashable, Sendable {
    /// A host name or address of this machine that the other nodes can reach.
    public let host: String
    /// The port; 0 selects a free one, which is announced to the other nodes.
    public let port: Int

    /// Creates an address. Connections to it are authenticated and not encrypted, so it belongs in a private network.
    public init(host: String, port: Int) {
        self.host = host
        self.port = port
    }
}

/// The announcement of a node to the other nodes through the engine: its address and a secret. Both ends of a link prove that
/// they know the secrets of both nodes.
struct NodeAnnouncement: Equatable, Sendable {
    static let keyBytes = 32
    private static let version: UInt8 = 1

    let address: NodeAddress
    let key: [UInt8]

    init(_ address: NodeAddress, key: [UInt8]) {
        self.address = address
        self.key = key
    }

    var bytes: [UInt8] {
        var bytes: [UInt8] = [Self.version]
        BinaryFields.append(key, to: &bytes)
        BinaryFields.append(UInt16(address.port), to: &bytes)
        BinaryFields.append(address.host.utf8, to: &bytes)
        return bytes
    }

    /// Parses an announcement; nil if it is invalid.
    init?(_ bytes: [UInt8]) {
        var rest = bytes[...]
        guard rest.popFirst() == Self.version, let key = BinaryFields.bytes(&rest), key.count == Self.keyBytes,
            let port = BinaryFields.number(UInt16.self, &rest), port > 0, let host = BinaryFields.text(&rest),
            !host.isEmpty
        else { return nil }
        self.init(NodeAddress(host: host, port: Int(port)), key: key)
    }
}

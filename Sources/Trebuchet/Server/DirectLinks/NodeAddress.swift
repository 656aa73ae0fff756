/// Where the other nodes of a cluster reach a node directly. It listens there, for them alone: apart from clients.
public struct NodeAddress: Hashable, Sendable {
    /// A name or an address of this machine that the other nodes reach, too.
    public let host: String
    /// 0 takes a free one: the others are told which.
    public let port: Int

    /// Connections there are not encrypted, and what is sent over them is authenticated: so it belongs into a network of its own.
    public init(host: String, port: Int) {
        self.host = host
        self.port = port
    }
}

/// What a node that can be reached directly tells the others of itself, through their engine: where, and a secret by which each end
/// of a link proves that it is the node of that name.
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
        ByteParts.append(key, to: &bytes)
        ByteParts.append(UInt16(address.port), to: &bytes)
        ByteParts.append(address.host.utf8, to: &bytes)
        return bytes
    }

    /// Nil for what no node tells of itself that can be reached.
    init?(_ bytes: [UInt8]) {
        var rest = bytes[...]
        guard rest.popFirst() == Self.version, let key = ByteParts.bytes(&rest), key.count == Self.keyBytes,
            let port = ByteParts.number(UInt16.self, &rest), port > 0, let host = ByteParts.text(&rest), !host.isEmpty
        else { return nil }
        self.init(NodeAddress(host: host, port: Int(port)), key: key)
    }
}

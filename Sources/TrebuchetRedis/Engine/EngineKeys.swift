internal import TrebuchetCluster

/// Where things stand at the server. All keys of a slot have the same tag in braces, so that in a cluster they lie on one node.
struct EngineKeys: Sendable {
    private let prefix: String

    /// Throws `invalid` for a prefix that would be no part of a key's beginning.
    init(prefix: String) throws(ClusterEngineError) {
        let isPlain = prefix.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x7B && $0 != 0x7D }
        guard (1...64).contains(prefix.utf8.count), isPlain else {
            throw ClusterEngineError(
                .invalid, "a prefix of keys has 1 to 64 characters of ASCII, and no spaces and braces")
        }
        self.prefix = prefix
    }

    var nodes: [[UInt8]] { ["until", "info"].map { Array("\(prefix):{nodes}:\($0)".utf8) } }

    func owner(of slot: ClusterSlot) -> [UInt8] { Array("\(prefix):{\(slot)}:own".utf8) }

    enum Part: String {
        /// A hash: top, fence (of the top), snap, snap_at, snap_fence.
        case meta
        /// A stream with ids offset-0, and the fields f (the fence) and d (the payload).
        case log
        /// A hash: call to reply.
        case done
        /// A list: the calls of that hash, the oldest first.
        case calls
        /// A channel: fence:offset:payload of what is appended.
        case published = "pub"
    }

    func part(_ part: Part, of log: ClusterLog) -> [UInt8] {
        Array("\(prefix):{\(log.slot)}:\(part.rawValue):\(log.id)".utf8)
    }

    func inbox(of node: ClusterNode) -> [UInt8] { Array("\(prefix):{node:\(node)}:inbox".utf8) }
}

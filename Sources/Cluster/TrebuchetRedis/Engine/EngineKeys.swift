internal import TrebuchetCluster

/// The keys at the server. All keys of a slot have the same tag in braces, so that a cluster stores them on one node.
struct EngineKeys: Sendable {
    private let prefix: String

    /// Creates keys with a prefix. Throws `invalid` for an invalid prefix.
    init(prefix: String) throws(ClusterEngineError) {
        let isPlain = prefix.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x7B && $0 != 0x7D }
        guard (1...64).contains(prefix.utf8.count), isPlain else {
            throw ClusterEngineError(
                .invalid, "a key prefix must have 1 to 64 ASCII characters, without spaces and braces")
        }
        self.prefix = prefix
    }

    var nodes: [[UInt8]] { ["until", "info"].map { Array("\(prefix):{nodes}:\($0)".utf8) } }

    /// A hash: `name`, and `whole` when all slots belong to that generation.
    var generation: [UInt8] { Array("\(prefix):{nodes}:generation".utf8) }

    func owner(of slot: ClusterSlot) -> [UInt8] { Array("\(prefix):{\(slot)}:own".utf8) }

    /// A key of a log.
    enum KeySuffix: String {
        /// A hash: top, fence (of the top), snap, snap_at, snap_fence.
        case meta
        /// A stream with ids offset-0, and the fields f (the fence) and d (the payload).
        case log
        /// A hash from call to reply.
        case done
        /// A list of the calls of that hash, the oldest first.
        case calls
        /// A channel with fence:offset:payload of appended entries.
        case published = "pub"
    }

    func part(_ part: KeySuffix, of log: ClusterLog) -> [UInt8] {
        Array("\(prefix):{\(log.slot)}:\(part.rawValue):\(log.id)".utf8)
    }

    /// A key of a table.
    enum TableKeySuffix: String {
        /// A hash with the fields `life` (incarnation), `top` (last change) and `cut` (last removed notice).
        case state = "table"
        /// A hash from name to version:until:bytes; until is 0 for permanent values.
        case values
        /// A sorted set of the names, all with the same score.
        case names
        /// A sorted set of the names of expiring values, by expiry.
        case until
        /// A stream with ids number-0, and the field d.
        case notices = "news"
        /// A channel with the numbers of changes that have notices.
        case published = "changed"
    }

    func part(_ part: TableKeySuffix, of table: ClusterTable) -> [UInt8] {
        Array("\(prefix):{\(table.slot)}:\(part.rawValue):\(table.id)".utf8)
    }

    /// Returns the key of a sorted set of a rate's subjects, by the time at which their rate is restored.
    func rate(_ kind: String, of table: ClusterTable) -> [UInt8] {
        Array("\(prefix):{\(table.slot)}:rate:\(kind):\(table.id)".utf8)
    }

    func inbox(of node: ClusterNode) -> [UInt8] { Array("\(prefix):{node:\(node)}:inbox".utf8) }
}

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

    /// A hash: name, and whole once all slots are of that generation.
    var generation: [UInt8] { Array("\(prefix):{nodes}:generation".utf8) }

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

    enum TablePart: String {
        /// A hash: life, top, cut.
        case state = "table"
        /// A hash: name to version:until:bytes; until is 0 for what stays.
        case values
        /// A sorted set of the names, all with one score.
        case names
        /// A sorted set of the names of what goes, by when.
        case until
        /// A stream with ids number-0, and the field d.
        case news
        /// A channel: numbers of changes that have news.
        case published = "told"
    }

    func part(_ part: TablePart, of table: ClusterTable) -> [UInt8] {
        Array("\(prefix):{\(table.slot)}:\(part.rawValue):\(table.id)".utf8)
    }

    /// A sorted set of those who have used something of a rate, by when they have it back.
    func rate(_ kind: String, of table: ClusterTable) -> [UInt8] {
        Array("\(prefix):{\(table.slot)}:rate:\(kind):\(table.id)".utf8)
    }

    func inbox(of node: ClusterNode) -> [UInt8] { Array("\(prefix):{node:\(node)}:inbox".utf8) }
}

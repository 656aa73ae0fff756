/// The streams of one connection, by their names and by the states that they show.
struct ConnectionStreams {
    /// Up to so many, all of them are looked at.
    private static let fewStreams = 8

    private var byID: [[UInt8]: StreamSubscription] = [:]
    /// By the identity of the state's source, once there are more than a few.
    private var byRoot: [ObjectIdentifier: [StreamSubscription]]?
    /// Up to where the reactor's changes were looked at.
    private var position: UInt64 = 0

    var count: Int { byID.count }
    var isEmpty: Bool { byID.isEmpty }
    var values: Dictionary<[UInt8], StreamSubscription>.Values { byID.values }

    subscript(streamID: [UInt8]) -> StreamSubscription? {
        get { byID[streamID] }
        set {
            let old = byID[streamID]
            byID[streamID] = newValue
            if byID.count <= Self.fewStreams {
                byRoot = nil
                // An idle client is not to keep the memory of streams that it had.
                if byID.isEmpty { byID = [:] }
            }
            // What the new one shows may have changed before somebody observed it here.
            if newValue != nil { position = 0 }
            guard byRoot != nil else { return }
            if let old { remove(old) }
            if let newValue { byRoot?[newValue.broadcaster.hub.root, default: []].append(newValue) }
        }
    }

    private mutating func remove(_ old: StreamSubscription) {
        let root = old.broadcaster.hub.root
        byRoot?[root]?.removeAll { $0 === old }
        if byRoot?[root]?.isEmpty == true { byRoot?[root] = nil }
    }

    /// Which streams an answer must not overtake.
    enum Changed {
        case none
        /// Any of them.
        case perhapsAll
        case these([StreamSubscription])
    }

    /// The streams whose state has changed since this was asked last.
    mutating func changed(in log: inout ChangeLog) -> Changed {
        guard !byID.isEmpty else { return .none }
        let changes = log.changes(since: &position)
        guard let changes, byID.count > Self.fewStreams, changes.count < byID.count else {
            guard changes?.isEmpty != true else { return .none }
            log.looks += byID.count
            return .perhapsAll
        }
        log.looks += changes.count
        if byRoot == nil { byRoot = Dictionary(grouping: byID.values) { $0.broadcaster.hub.root } }
        var found: [StreamSubscription] = []
        // Those of a state that changed twice come twice, and have nothing to get the second time.
        for root in changes { if let streams = byRoot?[root] { found += streams } }
        return found.isEmpty ? .none : .these(found)
    }
}

/// What streams ask of a connection.
extension ServerConnection {
    var isLocal: Bool { false }
    var isAwaited: Bool { shard.isAwaited }

    func streamsMayShow() { shard.streamsMayShow(self) }
}

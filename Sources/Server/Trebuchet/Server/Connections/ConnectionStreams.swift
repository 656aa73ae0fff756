package import TrebuchetActors

/// The streams of one connection, by name and by the source of their states.
package struct ConnectionStreams {
    /// The number of streams up to which all of them are checked.
    private static let fewStreams = 8

    private var byID: [[UInt8]: StreamSubscription] = [:]
    /// Streams by the identity of their source, once there are more than a few.
    private var byRoot: [ObjectIdentifier: [StreamSubscription]]?
    /// The position in the reactor's change log up to which changes were checked.
    private var position: UInt64 = 0

    package init() {}

    var count: Int { byID.count }
    package var isEmpty: Bool { byID.isEmpty }
    package var values: Dictionary<[UInt8], StreamSubscription>.Values { byID.values }

    package subscript(streamID: [UInt8]) -> StreamSubscription? {
        get { byID[streamID] }
        set {
            let old = byID[streamID]
            byID[streamID] = newValue
            if byID.count <= Self.fewStreams {
                byRoot = nil
                // An idle client does not keep the memory of its former streams.
                if byID.isEmpty { byID = [:] }
            }
            // The new stream's state may have changed before a subscriber observed it here.
            if newValue != nil { position = 0 }
            guard byRoot != nil else { return }
            if let old { remove(old) }
            if let newValue { byRoot?[newValue.broadcaster.producer.root, default: []].append(newValue) }
        }
    }

    private mutating func remove(_ old: StreamSubscription) {
        let root = old.broadcaster.producer.root
        byRoot?[root]?.removeAll { $0 === old }
        if byRoot?[root]?.isEmpty == true { byRoot?[root] = nil }
    }

    /// The streams that a response must not overtake.
    package enum Changed {
        case none
        /// Any of the streams may have changed.
        case possiblyAll
        case these([StreamSubscription])
    }

    /// Returns the streams whose state has changed since the previous call.
    package mutating func changed(in log: inout ChangedStreamQueue) -> Changed {
        guard !byID.isEmpty else { return .none }
        let changes = log.changes(since: &position)
        guard let changes, byID.count > Self.fewStreams, changes.count < byID.count else {
            guard changes?.isEmpty != true else { return .none }
            log.checkCount += byID.count
            return .possiblyAll
        }
        log.checkCount += changes.count
        if byRoot == nil { byRoot = Dictionary(grouping: byID.values) { $0.broadcaster.producer.root } }
        var found: [StreamSubscription] = []
        // A state that changed twice appears twice; the second time its streams have nothing to send.
        for root in changes { if let streams = byRoot?[root] { found += streams } }
        return found.isEmpty ? .none : .these(found)
    }
}

/// The requirements of streams for a connection.
extension ServerConnection {
    package var isLocal: Bool { false }
    package var isAwaited: Bool { shard.isAwaited }

    package func streamDidCatchUp() { shard.sendReadyResponses(of: self) }
}

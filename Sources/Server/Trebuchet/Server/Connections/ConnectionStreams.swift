package import TrebuchetActors

/// The streams of one connection, by name and by the source of their states, and its requests for streams. Isolated to the connection's
/// reactor.
package struct ConnectionStreams {
    /// The number of streams up to which all of them are checked.
    private static let fewStreams = 8

    private var byID: [[UInt8]: StreamSubscription] = [:]
    /// Streams by the identity of their source, once there are more than a few.
    private var byRoot: [ObjectIdentifier: [StreamSubscription]]?
    /// The position in the reactor's change log up to which changes were checked.
    private var position: UInt64 = 0
    /// The requests for streams that are starting, by streamID: the actor may be on another reactor.
    private(set) var starting: [[UInt8]: StreamRequest] = [:]
    /// The actor names of the streams whose actors check their observers.
    var observerChecked: [[UInt8]: ActorName] = [:]
    /// The requested names of the streams, at a server with access rules.
    var authorized: [[UInt8]: RequestedStream] = [:]
    /// The streams of actors that may move to another server.
    var movable: [[UInt8]: MovableStream] = [:]
    /// The number of streams that were given a name; small, since each idle connection has it. It restarts after overflow.
    private var nameCount: UInt32 = 0
    /// Indicates whether requested streams of other reactors may not show their first value yet.
    private(set) var hasPendingFirstValues = false
    /// Indicates whether a state could not be sent because the client reads too slowly.
    var hasBlocked = false
    /// Indicates whether a stream of whole values was requested, which is made like one with a filter.
    var hasWholeValues = false

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

    /// Removes a stream.
    mutating func remove(_ streamID: [UInt8]) {
        self[streamID] = nil
        if !observerChecked.isEmpty { observerChecked[streamID] = nil }
        if !movable.isEmpty { movable[streamID] = nil }
        if !authorized.isEmpty { authorized[streamID] = nil }
    }

    /// Removes the streams that have started: the connection is closed.
    mutating func removeStarted() {
        (byID, byRoot, position) = ([:], nil, 0)
        (observerChecked, movable, authorized) = ([:], [:], [:])
    }

    // MARK: Requests

    /// Returns a name that no stream and no request has.
    mutating func nextName(prefix: String) -> [UInt8] {
        while true {
            nameCount &+= 1
            let streamID = Array("\(prefix)s\(nameCount)".utf8)
            if byID[streamID] == nil, starting[streamID] == nil { return streamID }
        }
    }

    /// Adds a request. Returns the one that had its name.
    @discardableResult
    mutating func addRequest(_ request: StreamRequest, isOfOtherReactor: Bool) -> StreamRequest? {
        hasPendingFirstValues = hasPendingFirstValues || isOfOtherReactor
        return starting.updateValue(request, forKey: request.streamID)
    }

    /// Removes a completed request, unless another one has its name.
    mutating func removeRequest(_ request: StreamRequest) {
        if starting[request.streamID]?.reservation === request.reservation { starting[request.streamID] = nil }
        // An idle client does not keep the memory of its requests.
        if starting.isEmpty { starting = [:] }
    }

    // MARK: First values

    /// Indicates whether all streams are up to date, except for those that wait for their actors.
    var areCurrent: Bool { starting.isEmpty && byID.values.allSatisfy { $0.broadcaster.isUpToDate } }

    /// Indicates whether a stream is starting or not up to date.
    var awaitsFirstValues: Bool {
        mutating get {
            if hasPendingFirstValues { hasPendingFirstValues = !areCurrent }
            return hasPendingFirstValues
        }
    }

    /// Returns whether a stream is starting, or a stream of the shard is not up to date.
    mutating func awaitsFirstValues(from home: SystemShard?) -> Bool {
        let behind = byID.values.filter { !$0.broadcaster.isUpToDate }
        hasPendingFirstValues = !starting.isEmpty || !behind.isEmpty
        return !starting.isEmpty || behind.contains { $0.broadcaster.producer.home === home }
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

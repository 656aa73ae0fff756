internal import Platform

/// The limits of a coordination store. All nodes of a cluster have the same.
public struct ClusterEngineLimits: Hashable, Sendable {
    /// The maximum size in bytes of one log entry, one reply, and one message. Default 1 MiB.
    public var payloadBytes = 1 << 20
    /// The maximum size of one snapshot in bytes. Default 16 MiB.
    public var snapshotBytes = 16 << 20
    /// The maximum size of a node's info in bytes. Default 4 KiB.
    public var infoBytes = 4 << 10
    /// The maximum size of a log's name in bytes. Default 512.
    public var nameBytes = 512
    /// The maximum size of a call ID in bytes. Default 256.
    public var callIDBytes = 256
    /// The maximum number of entries of one log. A full log accepts no entry until a snapshot has made some
    /// unnecessary. Default 100,000.
    public var entriesPerLog = 100_000
    /// The maximum number of replies stored with one log; the oldest is deleted. Default 1,000.
    public var repliesPerLog = 1_000
    /// The retention of the replies of a log after the last of them. Default 86400 s.
    public var replyLifetime = Duration.seconds(86_400)
    /// The maximum size of the entries in one response to `read`, in bytes; it contains at least one entry. Default 1
    /// MiB.
    public var readBytes = 1 << 20

    /// The maximum size of one value of a table in bytes. Default 64 KiB.
    public var valueBytes = 64 << 10
    /// The maximum number of values of one table. A full table accepts no new ones. Default 10,000,000.
    public var valuesPerTable = 10_000_000
    /// The number of changes of one table whose notices are kept; the oldest is deleted. Default 100,000.
    public var noticesPerTable = 100_000

    /// The maximum number of names in one request for values, and of expectations and writes in one change.
    package static let maximumNames = 1_000

    /// Creates the default limits.
    public init() {}

    package func check(_ change: LogAppend, _ log: ClusterLog, _ lease: SlotLease) throws(ClusterEngineError) {
        try check(log, lease)
        try check(change.payload?.count ?? 0, payloadBytes, "an entry", "payloadBytes")
        guard let call = change.call else {
            guard change.payload != nil else {
                throw ClusterEngineError(.invalid, "an append requires a payload, a call to record, or both")
            }
            return
        }
        try check(call.reply.count, payloadBytes, "a reply", "payloadBytes")
        try check(callID: call.id)
    }

    package func check(snapshot: [UInt8], _ log: ClusterLog, _ lease: SlotLease) throws(ClusterEngineError) {
        try check(log, lease)
        try check(snapshot.count, snapshotBytes, "a snapshot", "snapshotBytes")
    }

    package func check(_ log: ClusterLog) throws(ClusterEngineError) {
        try check(log.id.utf8.count, nameBytes, "the name of a log", "nameBytes")
    }

    package func check(callID: String) throws(ClusterEngineError) {
        try check(callID.utf8.count, callIDBytes, "the name of a call", "callIDBytes")
        if callID.isEmpty { throw ClusterEngineError(.invalid, "a recorded call requires a name") }
    }

    package func check(info: [UInt8]) throws(ClusterEngineError) {
        try check(info.count, infoBytes, "the info of a node", "infoBytes")
    }

    package func check(message: [UInt8]) throws(ClusterEngineError) {
        try check(message.count, payloadBytes, "a message", "payloadBytes")
    }

    package func check(_ table: ClusterTable) throws(ClusterEngineError) {
        try check(table.id.utf8.count, nameBytes, "the name of a table", "nameBytes")
    }

    package func check(_ names: some Collection<String>, of table: ClusterTable) throws(ClusterEngineError) {
        try check(table)
        guard names.count <= Self.maximumNames else {
            throw ClusterEngineError(.tooLarge, "\(names.count) names at once; at most \(Self.maximumNames)")
        }
        for name in names {
            try check(name.utf8.count, nameBytes, "the name of a value", "nameBytes")
            if name.isEmpty { throw ClusterEngineError(.invalid, "a value of a table requires a name") }
        }
    }

    package func check(prefix: String, after: String?, of table: ClusterTable) throws(ClusterEngineError) {
        try check(table)
        try check(max(prefix.utf8.count, after?.utf8.count ?? 0), nameBytes, "the name of a value", "nameBytes")
    }

    package func check(_ change: TableChange, of table: ClusterTable) throws(ClusterEngineError) {
        try check(change.writes.map(\.name), of: table)
        try check(change.preconditions.map(\.name), of: table)
        try check(change.notice?.count ?? 0, valueBytes, "the notice of a change", "valueBytes")
        var bytes = 0
        for write in change.writes {
            switch write.operation {
            case .put(let value), .putExpiring(let value, _):
                try check(value.count, valueBytes, "a value", "valueBytes")
                bytes += value.count
            case .increment, .delete: break
            }
            if case .putExpiring(_, let lifetime) = write.operation { _ = try Self.milliseconds(lifetime) }
        }
        try check(bytes, snapshotBytes, "the values of a change", "snapshotBytes")
    }

    package func check(_ takes: [RateConsumption], of table: ClusterTable) throws(ClusterEngineError) {
        try check(takes.map(\.key.name), of: table)
        for take in takes {
            try check(take.key)
            guard take.interval > .zero, take.interval <= .seconds(86_400 * 365), take.burst > 0,
                take.maximumEntries > 0
            else {
                throw ClusterEngineError(
                    .invalid, "interval, burst and maximumEntries of a rate must be greater than 0")
            }
        }
        guard Set(takes.map(\.key)).count == takes.count else {
            throw ClusterEngineError(.invalid, "each rate may be taken only once per request")
        }
    }

    package func check(_ key: RateKey) throws(ClusterEngineError) {
        try check(key.name.utf8.count, nameBytes, "the name of a rate's owner", "nameBytes")
        let isWord = key.kind.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0 & 0xDF) }
        guard (1...64).contains(key.kind.utf8.count), isWord else {
            throw ClusterEngineError(.invalid, "a rate kind must have 1 to 64 letters and digits")
        }
    }

    /// Converts the duration of a lease to whole milliseconds: at least one, at most a day.
    package static func milliseconds(_ duration: Duration) throws(ClusterEngineError) -> Int {
        guard duration > .zero, duration <= .seconds(86_400) else {
            throw ClusterEngineError(
                .invalid, "\(duration) is not a valid duration of a lease or loan; use more than 0 and at most a day")
        }
        return duration.milliseconds
    }

    package func check(_ log: ClusterLog, _ lease: SlotLease) throws(ClusterEngineError) {
        try check(log)
        guard log.slot == lease.slot else {
            throw ClusterEngineError(.invalid, "the log belongs to \(log.slot), but the lease is for \(lease.slot)")
        }
    }

    private func check(_ count: Int, _ limit: Int, _ what: String, _ name: String) throws(ClusterEngineError) {
        guard count > limit else { return }
        throw ClusterEngineError(
            .tooLarge, "\(what) has \(count) bytes; the limit is \(limit) (ClusterEngineLimits.\(name))")
    }
}

internal import Platform

/// How much an engine keeps and takes. All nodes of a cluster have the same.
public struct ClusterEngineLimits: Hashable, Sendable {
    /// Bytes of one entry of a log, of one reply, and of one message. Default 1 MiB.
    public var payloadBytes = 1 << 20
    /// Bytes of one snapshot. Default 16 MiB.
    public var snapshotBytes = 16 << 20
    /// Bytes of what a node says of itself. Default 4 KiB.
    public var infoBytes = 4 << 10
    /// Bytes of a log's name. Default 512.
    public var nameBytes = 512
    /// Bytes of a call's name. Default 256.
    public var callIDBytes = 256
    /// Entries of one log; then it takes no more until a snapshot has made some needless. Default 100,000.
    public var entriesPerLog = 100_000
    /// Replies that are kept with one log; the oldest goes. Default 1,000.
    public var repliesPerLog = 1_000
    /// How long the replies of a log are kept after the last of them. Default 86400 s.
    public var replyLifetime = Duration.seconds(86_400)
    /// Bytes of entries in one answer to `read`; one entry comes in any case. Default 1 MiB.
    public var readBytes = 1 << 20

    /// The defaults.
    public init() {}

    package func check(_ change: LogAppend, _ log: ClusterLog, _ lease: SlotLease) throws(ClusterEngineError) {
        try check(log, lease)
        try check(change.payload?.count ?? 0, payloadBytes, "an entry", "payloadBytes")
        guard let call = change.call else {
            guard change.payload != nil else {
                throw ClusterEngineError(.invalid, "an append has a payload, or a call to record, or both")
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
        if callID.isEmpty { throw ClusterEngineError(.invalid, "a call that is recorded has a name") }
    }

    package func check(info: [UInt8]) throws(ClusterEngineError) {
        try check(info.count, infoBytes, "what a node says of itself", "infoBytes")
    }

    package func check(message: [UInt8]) throws(ClusterEngineError) {
        try check(message.count, payloadBytes, "a message", "payloadBytes")
    }

    /// A lease lasts whole milliseconds, at least one, at most a day.
    package static func milliseconds(_ lasting: Duration) throws(ClusterEngineError) -> Int {
        guard lasting > .zero, lasting <= .seconds(86_400) else {
            throw ClusterEngineError(.invalid, "\(lasting) is no time for a lease: up to a day")
        }
        return lasting.milliseconds
    }

    package func check(_ log: ClusterLog, _ lease: SlotLease) throws(ClusterEngineError) {
        try check(log)
        guard log.slot == lease.slot else {
            throw ClusterEngineError(.invalid, "the log lies in \(log.slot), and the lease is for \(lease.slot)")
        }
    }

    private func check(_ count: Int, _ limit: Int, _ what: String, _ name: String) throws(ClusterEngineError) {
        guard count > limit else { return }
        throw ClusterEngineError(
            .tooLarge, "\(what) has \(count) bytes; the limit is \(limit) (ClusterEngineLimits.\(name))")
    }
}

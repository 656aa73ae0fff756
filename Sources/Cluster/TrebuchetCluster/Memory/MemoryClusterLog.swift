internal import Platform

/// One log in memory.
struct MemoryClusterLog {
    private(set) var top = LogPosition.start
    private var snapshot: ClusterLogSnapshot?
    /// The newest entries, without a gap, up to `top`.
    private var entries: [ClusterLogEntry] = []
    private var replies: [ByteText: [UInt8]] = [:]
    /// The IDs of the recorded calls, the oldest first.
    private var calls: [ByteText] = []
    private var repliesUntil: UInt64 = 0

    func reply(to callID: String, now: UInt64) -> [UInt8]? {
        repliesUntil > now ? replies[ByteText(callID)] : nil
    }

    /// Appends. The caller has checked the lease.
    mutating func append(
        _ change: LogAppend, fence: UInt64, now: UInt64, _ limits: ClusterEngineLimits
    ) -> AppendOutcome {
        if let call = change.call, let reply = reply(to: call.id, now: now) { return .repeated(reply) }
        guard change.expectedHead == top.offset else { return .headMismatch(top.offset) }
        if change.payload != nil, entries.count >= limits.entriesPerLog { return .full }
        if let payload = change.payload {
            top = LogPosition(fence: fence, offset: top.offset + 1)
            entries.append(ClusterLogEntry(top, payload))
        }
        if let call = change.call { record(call, now, limits) }
        return .accepted(top.offset)
    }

    /// For tests.
    mutating func loseNewest(_ count: Int) {
        entries.removeLast(min(count, entries.count))
        top = entries.last?.position ?? snapshot?.position ?? .start
    }

    private mutating func record(_ call: LogAppend.Call, _ now: UInt64, _ limits: ClusterEngineLimits) {
        if repliesUntil <= now { (replies, calls) = ([:], []) }
        replies[ByteText(call.id)] = call.reply
        calls.append(ByteText(call.id))
        if calls.count > limits.repliesPerLog { replies[calls.removeFirst()] = nil }
        repliesUntil = now + UInt64(limits.replyLifetime.milliseconds)
    }

    /// Stores a snapshot. The caller has checked the lease.
    mutating func store(_ bytes: [UInt8], at offset: UInt64, keepingLast: Int) -> SnapshotOutcome {
        guard offset >= snapshot?.position.offset ?? 0, let fence = fence(at: offset) else { return .positionMismatch }
        snapshot = ClusterLogSnapshot(LogPosition(fence: fence, offset: offset), bytes)
        entries.removeAll { $0.position.offset + UInt64(max(0, keepingLast)) <= offset }
        return .stored
    }

    /// Returns the fence of an entry; nil if it is unknown or no longer stored.
    private func fence(at offset: UInt64) -> UInt64? {
        if offset == top.offset { return top.fence }
        if let position = snapshot?.position, position.offset == offset { return position.fence }
        if offset == 0 { return 0 }
        return entries.first { $0.position.offset == offset }?.position.fence
    }

    func read(after position: LogPosition?, limit: Int, bytes: Int) -> LogReadResult {
        if let position, fence(at: position.offset) == position.fence, isComplete(after: position.offset) {
            return LogReadResult(.resumed, some(behind: position.offset, limit, bytes), head: top)
        }
        guard let snapshot else { return LogReadResult(.start, some(behind: 0, limit, bytes), head: top) }
        return LogReadResult(.snapshot(snapshot), some(behind: snapshot.position.offset, limit, bytes), head: top)
    }

    /// Returns true if all entries after that offset are stored.
    private func isComplete(after offset: UInt64) -> Bool { UInt64(entries.count) >= top.offset - offset }

    private func some(behind offset: UInt64, _ limit: Int, _ bytes: Int) -> [ClusterLogEntry] {
        var left = bytes
        var taken: [ClusterLogEntry] = []
        for entry in entries where entry.position.offset > offset {
            left -= entry.payload.count
            guard taken.isEmpty || taken.count < max(1, limit) && left >= 0 else { break }
            taken.append(entry)
        }
        return taken
    }
}

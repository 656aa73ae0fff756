internal import TrebuchetCluster

extension LogReadResult {
    /// Parses the result of the script `read`; nil if it is incomplete.
    init?(_ words: [RESPValue], after position: LogPosition?) {
        guard words.count >= 6, words.count % 3 == 0, let top = LogPosition(offset: words[1], fence: words[2]),
            let snapAt = LogPosition(offset: words[3], fence: words[4]), let snapshot = words[5].bytes
        else { return nil }
        let start: Start
        var last: UInt64
        if words[0].isText("resumed"), let position {
            (start, last) = (.resumed, position.offset)
        } else if words[0].isText("snapshot") {
            (start, last) = (.snapshot(ClusterLogSnapshot(snapAt, snapshot)), snapAt.offset)
        } else if words[0].isText("start") {
            (start, last) = (.start, 0)
        } else {
            return nil
        }
        var entries: [ClusterLogEntry] = []
        entries.reserveCapacity(words.count / 3 - 2)
        for index in stride(from: 6, to: words.count, by: 3) {
            // The ids have the form offset-0.
            guard let id = words[index].bytes, id.suffix(2).elementsEqual([0x2D, 0x30]),
                let offset = RESPNumber.integer(id.dropLast(2)), let fence = words[index + 1].number,
                let payload = words[index + 2].bytes, last < UInt64.max, UInt64(exactly: offset) == last + 1
            else { return nil }
            last += 1
            entries.append(ClusterLogEntry(LogPosition(fence: UInt64(clamping: fence), offset: last), payload))
        }
        // A result without entries must end at the top; otherwise the log has lost some.
        guard !entries.isEmpty || last == top.offset else { return nil }
        self.init(start, entries, head: top)
    }
}

extension LogPosition {
    fileprivate init?(offset: RESPValue, fence: RESPValue) {
        guard let offset = offset.number.flatMap({ UInt64(exactly: $0) }),
            let fence = fence.number.flatMap({ UInt64(exactly: $0) })
        else { return nil }
        self.init(fence: fence, offset: offset)
    }
}

extension ClusterLogEntry {
    /// Parses `fence:offset:payload`.
    init?(published bytes: [UInt8]) {
        let parts = bytes.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let fence = RESPNumber.integer(parts[0]).flatMap({ UInt64(exactly: $0) }),
            let offset = RESPNumber.integer(parts[1]).flatMap({ UInt64(exactly: $0) })
        else { return nil }
        self.init(LogPosition(fence: fence, offset: offset), Array(parts[2]))
    }
}

extension ClusterEngineError {
    init(_ error: RedisError) {
        switch error {
        case .unavailable(let reason): self.init(.unavailable, reason)
        case .unknownOutcome(let reason): self.init(.unknownOutcome, reason)
        case .overloaded(let reason): self.init(.overloaded, reason)
        case .closed: self.init(.closed, "the coordination store was closed")
        case .reply(let reply):
            switch reply.code {
            case "LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "READONLY", "BUSY", "MOVED", "ASK":
                self.init(.unavailable, "Redis is temporarily unavailable: \(reply)")
            case "OOM":
                self.init(.failed, "Redis is out of memory; raise its maxmemory, or store less data (\(reply))")
            case "MISCONF":
                self.init(.failed, "Redis cannot write to its disk and refuses writes until it can (\(reply))")
            case "NOPERM": self.init(.failed, "the user of the URL lacks required permissions at Redis (\(reply))")
            default: self.init(.failed, "Redis replied: \(reply)")
            }
        }
    }
}

internal import Bytes
internal import TrebuchetWire

/// Events that a store is to have.
struct CapturedEvents {
    /// Behind which its log begins anew; nil when they follow what it has.
    let start: UInt64?
    let entries: [LogEntry]
}

extension EventSource {
    /// The events that a store has, as if they had just been sent. They may be many: made on any thread.
    ///
    /// - Parameters:
    ///   - room: how many are in memory.
    ///   - byteLimit: bytes of them that are.
    ///   - budget: where large ones are counted.
    static func recent(
        _ stored: StoredLog, room: Int, byteLimit: Int, countedIn budget: MemoryBudget?
    ) -> VersionLog {
        var recent = VersionLog(keepingEach: room, position: stored.snapshot.number, byteLimit: byteLimit)
        for entry in stored.entries {
            var message = ByteBuffer(capacity: entry.bytes.count + 128)
            entry.bytes.withUnsafeBytes {
                StreamDataParts.appendSuffix(sequence: entry.number, data: $0, into: &message)
            }
            recent.append(update(SharedBytes(message.bytes, countedIn: budget), entry.number))
        }
        return recent
    }

    /// Whether no event was ever sent.
    var isEmpty: Bool { recent.position == 0 }

    /// The newest of those that are kept, oldest first.
    func kept(most count: Int) -> ArraySlice<StateUpdate> { recent.kept.suffix(count) }

    /// What a store lacks, with what their observers are sent made ready behind the write; nil when it lacks nothing. It counts as
    /// given to the store, until `captureAgain`.
    ///
    /// - Parameter count: how many are kept: older ones are left out of a log that begins anew.
    func capture(most count: Int) -> CapturedEvents? {
        let last = recent.position
        guard let keeper, captured != last else { return nil }
        let found: CapturedEvents
        if let captured, let new = recent.updates(since: captured) {
            found = CapturedEvents(start: nil, entries: new.map(Self.entry))
        } else {
            // So many were sent since that some are forgotten already, or the store has none that these follow.
            let kept = kept(most: count)
            found = CapturedEvents(start: kept.first.map { $0.sequence - 1 } ?? last, entries: kept.map(Self.entry))
        }
        captured = last
        // Where some are missing the gap tells who observes.
        let unshown = Array(recent.updates(since: written) ?? recent.kept)
        keeper.show(while: nil) { [weak self] in self?.show(unshown, through: last) }
        return found
    }

    /// What was captured was not kept, or nobody knows.
    func captureAgain() { captured = nil }

    private static func entry(_ update: StateUpdate) -> LogEntry {
        LogEntry(number: update.sequence, base: update.sequence - 1, bytes: update.data.map { Array($0) } ?? [])
    }
}

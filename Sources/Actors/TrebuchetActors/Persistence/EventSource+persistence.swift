internal import Bytes
internal import TrebuchetWire

/// Events for a store write.
struct CapturedEvents {
    /// The number after which a new log begins; nil if the events continue the stored log.
    let start: UInt64?
    let entries: [LogEntry]
}

extension EventSource {
    /// Converts stored events to their in-memory form. There may be many, so it runs on any thread.
    ///
    /// - Parameters:
    ///   - count: the maximum number of events in memory.
    ///   - byteLimit: their maximum size.
    ///   - budget: the budget in which large events are counted.
    static func recent(
        _ stored: StoredLog, count: Int, byteLimit: Int, countedIn budget: MemoryBudget?
    ) -> VersionLog {
        var recent = VersionLog(keepingEach: count, position: stored.snapshot.version, byteLimit: byteLimit)
        for entry in stored.entries {
            var message = ByteBuffer(capacity: entry.bytes.count + 128)
            entry.bytes.withUnsafeBytes {
                StreamDataEncoding.appendSuffix(sequence: entry.version, data: $0, into: &message)
            }
            recent.append(update(SharedBytes(message.bytes, countedIn: budget), entry.version))
        }
        return recent
    }

    /// Whether no event was ever sent.
    var isEmpty: Bool { recent.position == 0 }

    /// Returns the newest retained events, oldest first.
    func retainedEvents(most count: Int) -> ArraySlice<StateUpdate> { recent.retainedUpdates.suffix(count) }

    /// Returns the events that the store lacks, and prepares the updates that follow the write; nil if the store is up to date.
    /// The events count as passed to the store until `discardCapture`.
    ///
    /// - Parameter count: the number of retained events: a new log omits older ones.
    func capture(most count: Int) -> CapturedEvents? {
        let last = recent.position
        guard let persister, captured != last else { return nil }
        let found: CapturedEvents
        if let captured, let new = recent.updates(since: captured) {
            found = CapturedEvents(start: nil, entries: new.map(Self.entry))
        } else {
            // So many events were sent that some are no longer in memory, or the store has none that these follow.
            let retained = retainedEvents(most: count)
            found = CapturedEvents(
                start: retained.first.map { $0.sequence - 1 } ?? last, entries: retained.map(Self.entry))
        }
        captured = last
        // If some are missing, subscribers detect the gap.
        let unpublished = Array(recent.updates(since: writtenNumber) ?? recent.retainedUpdates)
        persister.publishAfterWrite(while: nil) { [weak self] in self?.publishWritten(unpublished, through: last) }
        return found
    }

    /// Captures the events again after a failed write or an unknown outcome.
    func discardCapture() { captured = nil }

    private static func entry(_ update: StateUpdate) -> LogEntry {
        LogEntry(version: update.sequence, baseVersion: update.sequence - 1, bytes: update.data.map { Array($0) } ?? [])
    }
}

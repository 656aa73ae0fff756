/// The log of one actor's persisted events: an entry for each event, after an empty snapshot with the start position. A new
/// snapshot removes the oldest events when there are a quarter more than are retained.
/// Only on the reactor of its actor.
final class PersistedEvents {
    /// The minimum number of removed events for which a snapshot is written.
    private static let minimumRemovedEvents = 16

    private let key: StateKey
    /// Weak, because it belongs to the actor, which retains the states.
    private(set) weak var source: EventSource?
    private let keeping: Int
    private let byteLimit: Int
    /// The content of the store.
    private var count = 0
    private var byteCount = 0
    /// Set if the log is to be deleted because it never had an event.
    private var isDeletionScheduled = false

    init(_ key: StateKey, _ source: EventSource, keeping: Int, byteLimit: Int) {
        self.key = key
        self.source = source
        self.keeping = max(1, keeping)
        self.byteLimit = byteLimit
    }

    /// Starts persistence of the events.
    ///
    /// - Parameters:
    ///   - stored: the stored events; nil for none.
    ///   - recent: the stored events in their in-memory form; nil for none.
    ///   - isNew: whether the events were not observed in this process yet.
    func startPersistence(by states: PersistedStates, _ stored: StoredLog?, _ recent: VersionLog?, isNew: Bool) {
        guard let source else { return }
        // The actor was unexposed for a time and has sent nothing since.
        let isStored = stored.map { source.isAt($0.lastVersion, in: $0.snapshot.epoch) } ?? false
        if isStored { source.resumePersisting() }
        source.persist(by: states, keeping: keeping, byteLimit: byteLimit)
        guard let stored, isNew || isStored else {
            if !isNew { states.didChange() }
            return
        }
        if isNew, let recent {
            source.resume(epoch: stored.snapshot.epoch, after: stored.earlierIncarnations)
            source.restoreEvents(recent)
            if !stored.earlierIncarnations.isEmpty { source.recent.expectReturns() }
        }
        source.didWrite(through: stored.lastVersion)
        count = stored.entries.count
        byteCount = stored.entries.reduce(0) { $0 + $1.bytes.count }
    }

    /// Returns the writes for the events since the last call; empty if there are none. They count as written until
    /// `scheduleRewrite`.
    ///
    /// - Parameter name: the name of the actor.
    func changes(of name: String) throws -> [StateWrite] {
        guard let source else { throw TrebuchetError(.actorNotFound, "actor '\(name)' no longer exists") }
        if isDeletionScheduled, source.isEmpty { return [StateWrite(key, .deleteLog)] }
        guard let captured = source.capture(most: keeping) else { return [] }
        var writes: [StateWrite] = []
        if let start = captured.start {
            // Replaces an existing log, such as one of a write with a lost acknowledgement.
            writes = [StateWrite(key, .deleteLog), snapshot(start, source)]
            (count, byteCount) = (0, 0)
        }
        writes += captured.entries.map { .append($0, key) }
        count += captured.entries.count
        byteCount += captured.entries.reduce(0) { $0 + $1.bytes.count }
        if let trimmingSnapshot = trimmingSnapshot(source) { writes.append(trimmingSnapshot) }
        return writes
    }

    /// Returns the snapshot that removes old events, if there are too many.
    private func trimmingSnapshot(_ source: EventSource) -> StateWrite? {
        let retained = source.retainedEvents(most: keeping)
        guard let first = retained.first,
            count > retained.count + max(Self.minimumRemovedEvents, retained.count / 4)
                || byteCount - byteLimit / 4 > byteLimit
        else { return nil }
        count = retained.count
        byteCount = retained.reduce(0) { $0 + ($1.data?.count ?? 0) }
        return snapshot(first.sequence - 1, source)
    }

    private func snapshot(_ number: UInt64, _ source: EventSource) -> StateWrite {
        .snapshot(LogSnapshot(epoch: source.epoch, version: number, bytes: []), key)
    }

    /// Schedules the deletion of a log without events, after the actor was deactivated without subscribers. Otherwise clients
    /// that observe virtual actors of many names would fill the store.
    ///
    /// - Returns: whether there is something to write.
    func deleteIfEmpty() -> Bool {
        isDeletionScheduled = source.map { $0.isEmpty && $0.captured != nil } ?? false
        return isDeletionScheduled
    }

    /// Schedules all retained events again after a failed write or an unknown outcome.
    func scheduleRewrite() { source?.discardCapture() }
}

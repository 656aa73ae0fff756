/// The log of one actor's persisted events: an entry for each, behind an empty snapshot that says where they begin. A new one lets go
/// of the oldest when they are a quarter more than are kept.
///
/// `@unchecked Sendable`: touched on the reactor of its actor alone.
final class PersistedEvents: @unchecked Sendable {
    /// Fewer than these are not worth a snapshot.
    private static let leastForgotten = 16

    private let key: StateKey
    /// Belongs to the actor, whose reference to the states is strong.
    private(set) weak var source: EventSource?
    private let keeping: Int
    private let byteLimit: Int
    /// What the store has.
    private var count = 0
    private var byteCount = 0
    /// Whether the log is to go, since there was never an event.
    private var isGivenUp = false

    init(_ key: StateKey, _ source: EventSource, keeping: Int, byteLimit: Int) {
        self.key = key
        self.source = source
        self.keeping = max(1, keeping)
        self.byteLimit = byteLimit
    }

    /// Keeps the events from now on.
    ///
    /// - Parameters:
    ///   - stored: what the store has of them; nil for nothing.
    ///   - recent: the same as it is in memory; nil for nothing.
    ///   - isNew: whether nobody has observed them in this process.
    func begin(by states: PersistedStates, _ stored: StoredLog?, _ recent: VersionLog?, isNew: Bool) {
        guard let source else { return }
        // An actor that was out of reach for a while, and has sent nothing meanwhile.
        let isStored = stored.map { source.isAt($0.last, in: $0.snapshot.epoch) } ?? false
        if isStored { source.goOnKeeping() }
        source.persist(by: states, keeping: keeping, byteLimit: byteLimit)
        guard let stored, isNew || isStored else {
            if !isNew { states.didChange() }
            return
        }
        if isNew, let recent {
            source.resume(epoch: stored.snapshot.epoch, after: stored.earlier)
            source.take(recent)
            if !stored.earlier.isEmpty { source.recent.expectReturns() }
        }
        source.isKept(through: stored.last)
        count = stored.entries.count
        byteCount = stored.entries.reduce(0) { $0 + $1.bytes.count }
    }

    /// What was sent since the last call; empty when that is nothing. It counts as written, until `writeAgain`.
    ///
    /// - Parameter name: of the actor.
    func changes(of name: String) throws -> [StateWrite] {
        guard let source else { throw TrebuchetError(.actorNotFound, "actor '\(name)' is gone") }
        if isGivenUp, source.isEmpty { return [StateWrite(key, .deleteLog)] }
        guard let captured = source.capture(most: keeping) else { return [] }
        var writes: [StateWrite] = []
        if let start = captured.start {
            // Whatever is there, of a write that failed for instance, gives way.
            writes = [StateWrite(key, .deleteLog), snapshot(start, source)]
            (count, byteCount) = (0, 0)
        }
        writes += captured.entries.map { .append($0, key) }
        count += captured.entries.count
        byteCount += captured.entries.reduce(0) { $0 + $1.bytes.count }
        if let forgetting = forgetting(source) { writes.append(forgetting) }
        return writes
    }

    /// What lets go of old ones, when they are too many.
    private func forgetting(_ source: EventSource) -> StateWrite? {
        let kept = source.kept(most: keeping)
        guard let first = kept.first,
            count > kept.count + max(Self.leastForgotten, kept.count / 4) || byteCount - byteLimit / 4 > byteLimit
        else { return nil }
        count = kept.count
        byteCount = kept.reduce(0) { $0 + ($1.data?.count ?? 0) }
        return snapshot(first.sequence - 1, source)
    }

    private func snapshot(_ number: UInt64, _ source: EventSource) -> StateWrite {
        .snapshot(LogSnapshot(epoch: source.epoch, number: number, bytes: []), key)
    }

    /// The actor is let go of, and nobody observes: a log without events that was begun for who did goes. Else who observes actors of
    /// many names, which are made for that, would fill the store.
    ///
    /// - Returns: whether there is something to write for that.
    func giveUpIfEmpty() -> Bool {
        isGivenUp = source.map { $0.isEmpty && $0.captured != nil } ?? false
        return isGivenUp
    }

    /// What was given was not kept, or nobody knows: all that are kept are written next.
    func writeAgain() { source?.captureAgain() }
}

internal import Bytes

/// The last versions of a stream, each encoded once and continuing the one before. The source and each broadcaster have one. It
/// serves slow and resuming subscribers, the store and the next delta.
///
/// With conflation it keeps deltas: at most 64, which is two turns' worth, and together no larger than the value. Without
/// conflation it keeps each version: the requested number, and by default at most 16 MiB of them, but always the newest. At
/// most `StreamDelivery.maximumBuffered` can be requested.
package struct VersionLog: Sendable {
    static let maximumDifferences = 64
    /// The default maximum size of the versions kept without conflation, in bytes.
    static let maximumBytes = 16 << 20
    /// The factor by which more versions are kept for resuming subscribers, and the maximum size of these in bytes.
    static let returning = 8
    static let returningBytes = 1 << 20

    /// The version from which the next one may be a delta.
    var newest: StateUpdate?
    /// The number of the last version or event.
    private(set) var position: UInt64
    /// The number of versions that are kept without conflation; nil if deltas are kept.
    private let limit: Int?
    private let byteLimit: Int
    /// The version up to which more are kept.
    private var returnsUntil: UInt64 = 0
    private var updates: [StateUpdate] = []
    /// The number of removed elements at the front of `updates`, which are dropped together from time to time.
    private var forgotten = 0
    private var bytes = 0
    private var forgottenBytes = 0

    /// Creates an empty log.
    ///
    /// - Parameters:
    ///   - limit: the number of versions that are kept without conflation; nil if the newest counts.
    ///   - position: the number of the last version before the first that is appended.
    ///   - byteLimit: the maximum size of the versions kept without conflation.
    init(keepingEach limit: Int? = nil, position: UInt64 = 0, byteLimit: Int = Self.maximumBytes) {
        self.limit = limit.map { StreamDelivery.room(for: $0) }
        self.position = position
        self.byteLimit = byteLimit
    }

    /// Whether the log retains each version.
    var retainsEachVersion: Bool { limit != nil }
    var count: Int { updates.count - forgotten }
    /// The versions, oldest first.
    var retainedUpdates: ArraySlice<StateUpdate> { updates[forgotten...] }

    /// Prepares for subscribers of an earlier incarnation at another node, which resume after further changes here. The log
    /// keeps more versions for them during the first changes.
    mutating func expectReturns() {
        guard let limit else { return }
        returnsUntil = position &+ UInt64(limit * Self.returning)
    }

    /// Returns whether a version beyond the limit is kept for resuming subscribers.
    private func isForReturns(_ limit: Int) -> Bool {
        position <= returnsUntil && count <= limit * (1 + Self.returning) && bytes <= Self.returningBytes
    }

    mutating func append(_ update: StateUpdate) {
        newest = update
        if limit == nil, update.patch == nil { return reset(at: update.sequence) }
        if update.base != position { removeAll() }
        position = update.sequence
        // Otherwise each delta would keep the whole value.
        let stored = limit == nil ? update.withoutSnapshot : update
        updates.append(stored)
        bytes += stored.storedBytes
        let most = limit ?? Self.maximumDifferences
        let mostBytes = limit == nil ? update.snapshotByteCount : byteLimit
        while count > most && !isForReturns(most) || bytes > mostBytes && count > (limit == nil ? 0 : 1) {
            bytes -= updates[forgotten].storedBytes
            forgottenBytes += updates[forgotten].storedBytes
            forgotten += 1
        }
        if forgotten > max(32, limit ?? 0) || forgottenBytes > byteLimit / 4 || limit == nil { dropForgotten() }
    }

    /// Returns the updates from a version to the newest, oldest first; nil if some were removed.
    func updates(since sequence: UInt64) -> ArraySlice<StateUpdate>? {
        guard sequence < position else { return [] }
        // Nearly all subscribers are one version behind.
        if let last = updates.last, last.base == sequence { return updates.suffix(1) }
        var (low, high) = (forgotten, updates.count)
        while low < high {
            let middle = (low + high) / 2
            if updates[middle].sequence > sequence { high = middle } else { low = middle + 1 }
        }
        guard low < updates.count, updates[low].base == sequence else { return nil }
        return updates[low...]
    }

    /// Returns the log as it was when the version with this number was the last one.
    func asOf(_ sequence: UInt64) -> VersionLog {
        guard sequence < position else { return self }
        var earlier = VersionLog(keepingEach: limit, position: sequence, byteLimit: byteLimit)
        earlier.returnsUntil = returnsUntil
        for update in retainedUpdates.prefix(while: { $0.sequence <= sequence }) { earlier.append(update) }
        return earlier
    }

    /// Removes all versions: they are not needed, or the next one is no delta from them.
    mutating func discardVersions() {
        newest = nil
        removeAll()
    }

    /// Removes all versions; the next one follows `position`.
    mutating func reset(at position: UInt64) {
        removeAll()
        self.position = position
    }

    private mutating func dropForgotten() {
        guard forgotten > 0 else { return }
        updates.removeFirst(forgotten)
        forgotten = 0
        forgottenBytes = 0
    }

    private mutating func removeAll() {
        updates.removeAll(keepingCapacity: limit == nil)
        forgotten = 0
        forgottenBytes = 0
        bytes = 0
    }
}

extension StateUpdate {
    /// The version that this update follows.
    fileprivate var base: UInt64 { patch?.base ?? sequence - 1 }
    /// The size of its content in bytes.
    fileprivate var storedBytes: Int { (current?.count ?? 0) + (patch?.suffix.count ?? 0) }
}

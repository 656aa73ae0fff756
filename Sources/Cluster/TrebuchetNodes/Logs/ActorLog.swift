internal import Platform
internal import Relays
internal import Synchronization
internal import TrebuchetActors
internal import TrebuchetCluster

/// The size of an actor's log: its snapshot, and the entries after it.
struct ActorLogSize {
    var snapshot = 0
    var entries = 0
    var entryBytes = 0

    mutating func addEntry(bytes: Int) {
        entries += 1
        entryBytes += bytes
    }
}

/// A node's knowledge of the log of one actor, under one fence of its slot.
final class ActorLog: Sendable {
    private struct State {
        var fence: UInt64 = 0
        var position: LogPosition?
        /// The end of the log when this node last knew it, under that fence: a coordination store with less has lost entries.
        var lastKnownEnd: LogPosition?
        /// The newest acknowledged entries, up to `lastKnownEnd`.
        var recent = RestorableEntries()
        /// Indicates whether this node has loaded the log under that fence, and thereby started an incarnation of its streams.
        var hasBegun = false
        var removal = Removal.none
        var size = ActorLogSize()
        /// Present from loading to the first write.
        var contents: ActorLogContents?
        /// The alarm rows that the log has under that fence, while `position` is known.
        var alarmRows: ActorAlarmRows = [:]
        var isCompacting = false
        /// Bytes of entries that are not compacted, and their number of bytes when the compaction began.
        var uncompacted = (all: 0, atBegin: 0)
        var hasWritten = false
        /// Indicates whether the last compacted contents were too large for the coordination store.
        var isTooLarge = false
        /// The number of current readers and writers.
        var users = 0
    }

    /// The state of a removal of the log under that fence, until the next write.
    private enum Removal {
        case none, done
        /// The coordination store did not report the result, and may still remove it.
        case inDoubt
    }

    /// The number of entries at which a log is compacted whatever its size.
    private static let maximumEntries = 10_000
    /// The size in bytes of a log that cannot be compacted at which it accepts no more entries.
    private static let maximumBytes = 64 << 20

    let name: String
    let log: ClusterLog
    /// Held by the current reader or writer of the log.
    let turn = AsyncBinarySemaphore()
    private let state = Mutex(State())

    init(_ name: String) {
        self.name = name
        log = ClusterLog(name)
    }

    /// Returns the position of the newest entry that this node knows under that fence.
    func position(under fence: UInt64) -> LogPosition? { state.withLock { $0.fence == fence ? $0.position : nil } }

    func loaded(under fence: UInt64) -> ActorLogContents? { state.withLock { $0.fence == fence ? $0.contents : nil } }

    /// Returns whether a complete log is in the incarnation that this node has started under that fence. A node that has forgotten
    /// its log recognizes entries of that fence.
    ///
    /// - Parameter hasLost: True if the coordination store may have lost entries of that fence.
    func isContinuous(at position: LogPosition, under fence: UInt64, hasLost: Bool = false) -> Bool {
        state.withLock { $0.fence == fence && $0.hasBegun } || position.fence == fence && !hasLost
    }

    /// Returns the alarm rows that the log has as far as this node knows under that fence.
    func alarmRows(under fence: UInt64) -> ActorAlarmRows { state.withLock { $0.fence == fence ? $0.alarmRows : [:] } }

    /// Records the alarm rows of the log that was read, or after an append.
    func setAlarmRows(_ rows: ActorAlarmRows, under fence: UInt64) {
        state.withLock { if $0.fence == fence { $0.alarmRows = rows } }
    }

    // MARK: Acknowledged entries

    /// Returns the end of the log when this node last knew it under that fence, `start` for a log that it has removed; nil when it
    /// is unknown.
    func lastKnownEnd(under fence: UInt64) -> LogPosition? {
        state.withLock { $0.fence == fence ? $0.removal == .done ? .start : $0.lastKnownEnd : nil }
    }

    /// Returns whether this node has removed the log under that fence and has not written since.
    func isRemoved(under fence: UInt64) -> Bool { state.withLock { $0.fence == fence && $0.removal == .done } }

    /// Returns whether the outcome of a removal by this node under that fence is unknown.
    func mayBeRemoved(under fence: UInt64) -> Bool { state.withLock { $0.fence == fence && $0.removal == .inDoubt } }

    /// Records the end of a log that was just read and contains all known entries.
    ///
    /// - Parameter position: nil where the end may not be confirmed.
    func didRead(to position: LogPosition?, under fence: UInt64) {
        state.withLock { state in
            if state.fence != fence {
                (state.position, state.contents, state.lastKnownEnd, state.hasBegun) = (nil, nil, nil, false)
                (state.recent, state.removal, state.alarmRows) = (RestorableEntries(), .none, [:])
            }
            state.fence = fence
            guard let position else { return }
            if state.lastKnownEnd != position { state.recent = RestorableEntries() }
            state.lastKnownEnd = position
        }
    }

    /// Keeps an acknowledged entry, until `dropRecent`.
    ///
    /// - Parameter number: The number in `RecentEntries`.
    func didAcknowledge(_ entry: [UInt8], _ number: UInt64, at position: LogPosition) {
        state.withLock { state in
            if let seen = state.lastKnownEnd, seen.offset + 1 != position.offset { state.recent = RestorableEntries() }
            state.recent.append(entry, number)
            (state.lastKnownEnd, state.removal) = (position, .none)
        }
    }

    /// Drops the entries up to that number.
    func dropRecent(upTo number: UInt64) { state.withLock { $0.recent.drop(upTo: number) } }

    /// Returns the acknowledged entries after an offset; nil when this node does not keep all of them.
    func recent(behind offset: UInt64) -> [[UInt8]]? {
        state.withLock { state in
            guard let seen = state.lastKnownEnd, seen.offset >= offset else { return nil }
            return state.recent.last(seen.offset - offset)
        }
    }

    /// The end of a log that this node has recently written, under any fence.
    var recentlyWrittenEnd: LogPosition? { state.withLock { $0.recent.isEmpty ? nil : $0.lastKnownEnd } }

    /// Indicates whether it is being read, written or compacted.
    var isInUse: Bool { state.withLock { $0.users > 0 || $0.isCompacting } }
    /// Indicates whether it is in use, or this node has written it and may continue.
    var isNeeded: Bool { state.withLock { $0.users > 0 || $0.isCompacting || $0.hasWritten } }

    var isCompacting: Bool { state.withLock { $0.isCompacting } }

    func enter() { state.withLock { $0.users += 1 } }
    func releaseUse() { state.withLock { $0.users -= 1 } }

    /// Discards the position of the log, so that it is read again.
    ///
    /// - Parameter all: True to discard the known end too, so that a new incarnation starts.
    func discardContents(all: Bool = false) {
        state.withLock { state in
            state.position = nil
            state.contents = nil
            guard all else { return }
            (state.lastKnownEnd, state.size, state.hasWritten) = (nil, ActorLogSize(), false)
            (state.recent, state.hasBegun, state.removal) = (RestorableEntries(), false, .none)
            state.alarmRows = [:]
        }
    }

    /// Records that the log was removed, or that the outcome is unknown.
    func didRemove(under fence: UInt64, isInDoubt: Bool = false) {
        discardContents(all: true)
        state.withLock { ($0.fence, $0.removal) = (fence, isInDoubt ? .inDoubt : .done) }
    }

    func unload() { state.withLock { $0.contents = nil } }

    func didLoad(_ contents: ActorLogContents, at position: LogPosition, _ size: ActorLogSize, under fence: UInt64) {
        state.withLock { state in
            state.fence = fence
            state.position = position
            state.hasBegun = true
            state.size = size
            state.uncompacted = (size.entryBytes, 0)
            state.contents = contents
        }
    }

    func didAppend(_ bytes: Int, at position: LogPosition, under fence: UInt64) {
        state.withLock { state in
            state.fence = fence
            state.position = position
            state.hasWritten = true
            state.size.addEntry(bytes: bytes)
            state.uncompacted.all += bytes
            state.contents = nil
        }
    }

    /// Indicates whether the part of the log that cannot be compacted is so large that it accepts no more entries.
    var isTooLarge: Bool {
        state.withLock { $0.isTooLarge && $0.size.snapshot + $0.uncompacted.all > Self.maximumBytes }
    }

    /// Marks the log as being compacted if it is due and not in progress; returns whether it did.
    func beginCompaction(least: Int, times: Int) -> Bool {
        state.withLock { state in
            let size = state.size
            let limit = max(least, size.snapshot * times)
            guard !state.isCompacting, size.entryBytes > limit || size.entries > Self.maximumEntries else {
                return false
            }
            state.isCompacting = true
            state.uncompacted.atBegin = state.uncompacted.all
            // The size is counted from zero from now on.
            state.size.entryBytes = 0
            state.size.entries = 0
            return true
        }
    }

    /// - Parameters:
    ///   - snapshot: The size of the new snapshot in bytes; nil after a failure.
    ///   - isTooLarge: True if the size was the reason for the failure.
    func endCompaction(_ snapshot: Int?, isTooLarge: Bool) {
        state.withLock { state in
            state.isCompacting = false
            state.isTooLarge = isTooLarge
            if let snapshot {
                state.size.snapshot = snapshot
                state.uncompacted.all -= state.uncompacted.atBegin
            } else {
                // Retried, but not by each write, since it reads the whole log.
                state.size.entries = max(state.size.entries, Self.maximumEntries - 1_000)
            }
        }
    }

    /// Records a compaction that a write required.
    func didCompact(_ snapshot: Int) {
        state.withLock { state in
            state.size = ActorLogSize(snapshot: snapshot)
            (state.uncompacted, state.isTooLarge) = ((0, 0), false)
        }
    }
}

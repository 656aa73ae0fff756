internal import Platform
internal import Relays
internal import Synchronization
internal import TrebuchetActors
internal import TrebuchetCluster

/// How much an actor's log has: the whole that it begins with, and what came since.
struct PartitionSize {
    var snapshot = 0
    var entries = 0
    var entryBytes = 0

    mutating func add(_ bytes: Int) {
        entries += 1
        entryBytes += bytes
    }
}

/// What a node knows of the log of one actor, under one fence of its slot.
final class Partition: Sendable {
    private struct State {
        var fence: UInt64 = 0
        var place: LogPosition?
        /// The end of the log when this node last knew it, under that fence: an engine that has less has lost something.
        var seen: LogPosition?
        /// The newest entries that the engine has acknowledged, up to `seen`.
        var recent = KeptEntries()
        /// Whether this node has loaded the log under that fence, and with it begun a life of its streams.
        var hasBegun = false
        var removal = Removal.none
        var size = PartitionSize()
        /// From being loaded to the first write.
        var contents: PartitionContents?
        var isFolding = false
        /// Bytes of entries that are not folded, and how many of them there were when folding began.
        var unfolded = (all: 0, atBegin: 0)
        var hasWritten = false
        /// Whether what it makes was larger than the engine takes when it was to be folded last.
        var isTooLarge = false
        /// Who reads or writes it now.
        var users = 0
    }

    /// The state of a removal of the log under that fence, until the next write.
    private enum Removal {
        case none, done
        /// The engine did not say whether it is done, and may yet do it.
        case inDoubt
    }

    /// Entries that a log may have before it is folded whatever they weigh.
    private static let mostEntries = 10_000
    /// Bytes of a log that cannot be folded; then it takes no more.
    private static let mostBytes = 64 << 20

    let name: String
    let log: ClusterLog
    /// Held by who reads or writes the log.
    let turn = AsyncBinarySemaphore()
    private let state = Mutex(State())

    init(_ name: String) {
        self.name = name
        log = ClusterLog(name)
    }

    /// The newest entry, as far as this node knows of it under that fence.
    func place(under fence: UInt64) -> LogPosition? { state.withLock { $0.fence == fence ? $0.place : nil } }

    func loaded(under fence: UInt64) -> PartitionContents? { state.withLock { $0.fence == fence ? $0.contents : nil } }

    /// Returns whether a complete log is in the life that this node has begun under that fence. A node that has forgotten its log
    /// recognizes entries of that fence.
    ///
    /// - Parameter hasLost: whether the engine may have lost entries of that fence.
    func goesOn(at place: LogPosition, under fence: UInt64, hasLost: Bool = false) -> Bool {
        state.withLock { $0.fence == fence && $0.hasBegun } || place.fence == fence && !hasLost
    }

    // MARK: Acknowledged entries

    /// The end of the log when this node last knew it under that fence, `start` for a log that it has removed; nil when it knows nothing.
    func seen(under fence: UInt64) -> LogPosition? {
        state.withLock { $0.fence == fence ? $0.removal == .done ? .start : $0.seen : nil }
    }

    /// Whether this node has removed the log under that fence, and has written nothing since.
    func isRemoved(under fence: UInt64) -> Bool { state.withLock { $0.fence == fence && $0.removal == .done } }

    /// Whether the outcome of a removal by this node under that fence is unknown.
    func mayBeRemoved(under fence: UInt64) -> Bool { state.withLock { $0.fence == fence && $0.removal == .inDoubt } }

    /// Notes the end of a log that was just read and has all that is known of it.
    ///
    /// - Parameter place: nil where the end may not be confirmed.
    func didRead(to place: LogPosition?, under fence: UInt64) {
        state.withLock { state in
            if state.fence != fence {
                (state.place, state.contents, state.seen, state.hasBegun) = (nil, nil, nil, false)
                (state.recent, state.removal) = (KeptEntries(), .none)
            }
            state.fence = fence
            guard let place else { return }
            if state.seen != place { state.recent = KeptEntries() }
            state.seen = place
        }
    }

    /// Keeps an entry that the engine has acknowledged, until `dropRecent`.
    ///
    /// - Parameter number: of `RecentEntries`.
    func didAcknowledge(_ entry: [UInt8], _ number: UInt64, at place: LogPosition) {
        state.withLock { state in
            if let seen = state.seen, seen.offset + 1 != place.offset { state.recent = KeptEntries() }
            state.recent.append(entry, number)
            (state.seen, state.removal) = (place, .none)
        }
    }

    /// Keeps the entries up to that number no longer.
    func dropRecent(upTo number: UInt64) { state.withLock { $0.recent.drop(upTo: number) } }

    /// The acknowledged entries behind an offset; nil when this node does not keep all of them.
    func recent(behind offset: UInt64) -> [[UInt8]]? {
        state.withLock { state in
            guard let seen = state.seen, seen.offset >= offset else { return nil }
            return state.recent.last(seen.offset - offset)
        }
    }

    /// The end of a log that this node has written lately, under whatever fence.
    var written: LogPosition? { state.withLock { $0.recent.isEmpty ? nil : $0.seen } }

    /// Whether somebody reads, writes or folds it now.
    var isInUse: Bool { state.withLock { $0.users > 0 || $0.isFolding } }
    /// Or this node has written it, and may go on.
    var isNeeded: Bool { state.withLock { $0.users > 0 || $0.isFolding || $0.hasWritten } }

    var isFolding: Bool { state.withLock { $0.isFolding } }

    func enter() { state.withLock { $0.users += 1 } }
    func leave() { state.withLock { $0.users -= 1 } }

    /// Where the log is it has to read anew.
    ///
    /// - Parameter all: also where it was: it begins anew.
    func forget(all: Bool = false) {
        state.withLock { state in
            state.place = nil
            state.contents = nil
            guard all else { return }
            (state.seen, state.size, state.hasWritten) = (nil, PartitionSize(), false)
            (state.recent, state.hasBegun, state.removal) = (KeptEntries(), false, .none)
        }
    }

    /// The engine has removed the log, or has not said whether it has.
    func didRemove(under fence: UInt64, isInDoubt: Bool = false) {
        forget(all: true)
        state.withLock { ($0.fence, $0.removal) = (fence, isInDoubt ? .inDoubt : .done) }
    }

    func unload() { state.withLock { $0.contents = nil } }

    func didLoad(_ contents: PartitionContents, at place: LogPosition, _ size: PartitionSize, under fence: UInt64) {
        state.withLock { state in
            state.fence = fence
            state.place = place
            state.hasBegun = true
            state.size = size
            state.unfolded = (size.entryBytes, 0)
            state.contents = contents
        }
    }

    func didAppend(_ bytes: Int, at place: LogPosition, under fence: UInt64) {
        state.withLock { state in
            state.fence = fence
            state.place = place
            state.hasWritten = true
            state.size.add(bytes)
            state.unfolded.all += bytes
            state.contents = nil
        }
    }

    /// Whether the log has so much that cannot be folded that it takes no more.
    var isTooLarge: Bool {
        state.withLock { $0.isTooLarge && $0.size.snapshot + $0.unfolded.all > Self.mostBytes }
    }

    /// Whether it is time, and nobody does.
    func beginFolding(least: Int, times: Int) -> Bool {
        state.withLock { state in
            let size = state.size
            let limit = max(least, size.snapshot * times)
            guard !state.isFolding, size.entryBytes > limit || size.entries > Self.mostEntries else { return false }
            state.isFolding = true
            state.unfolded.atBegin = state.unfolded.all
            // What comes from now on counts anew.
            state.size.entryBytes = 0
            state.size.entries = 0
            return true
        }
    }

    /// - Parameters:
    ///   - snapshot: bytes that it has now; nil when it failed.
    ///   - isTooLarge: whether that is why it failed.
    func endFolding(_ snapshot: Int?, isTooLarge: Bool) {
        state.withLock { state in
            state.isFolding = false
            state.isTooLarge = isTooLarge
            if let snapshot {
                state.size.snapshot = snapshot
                state.unfolded.all -= state.unfolded.atBegin
            } else {
                // It is tried again, but not by each write: it reads the whole log.
                state.size.entries = max(state.size.entries, Self.mostEntries - 1_000)
            }
        }
    }

    /// The same of one that was folded in a write's way.
    func didFold(_ snapshot: Int) {
        state.withLock { state in
            state.size = PartitionSize(snapshot: snapshot)
            (state.unfolded, state.isTooLarge) = ((0, 0), false)
        }
    }
}

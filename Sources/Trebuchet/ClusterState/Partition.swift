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
        /// Where it was when this node last knew, under that fence: an engine that has less has lost something.
        var seen: LogPosition?
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

    /// Whether a log that is at that place has all that this node has written and read under that fence: then it is in the life that
    /// the node has begun with the first of it. A node that has forgotten what it had read sees that it has written.
    func goesOn(at place: LogPosition, under fence: UInt64) -> Bool {
        state.withLock { state in
            guard state.fence == fence, let seen = state.seen else { return place.fence == fence }
            return seen.offset <= place.offset
        }
    }

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
            if all { (state.seen, state.size, state.hasWritten) = (nil, PartitionSize(), false) }
        }
    }

    func unload() { state.withLock { $0.contents = nil } }

    func didLoad(_ contents: PartitionContents, at place: LogPosition, _ size: PartitionSize, under fence: UInt64) {
        state.withLock { state in
            state.fence = fence
            state.place = place
            state.seen = place
            state.size = size
            state.unfolded = (size.entryBytes, 0)
            state.contents = contents
        }
    }

    func didAppend(_ bytes: Int, at place: LogPosition, under fence: UInt64) {
        state.withLock { state in
            state.fence = fence
            state.place = place
            state.seen = place
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

internal import TrebuchetActors
internal import TrebuchetCluster

/// The forwarded streams that one client has, by the client's names, with counts for each actor and slot.
struct ForwardedStreams {
    /// An attempt to resume a stream. Its outcome is ignored after the stream has entered another phase.
    struct Attempt: Hashable, Sendable {
        let streamID: [UInt8]
        let number: UInt64
    }

    private struct Entry {
        var stream: ForwardedStream
        /// The number of its latest change of phase, higher for a later one.
        var change: UInt64
    }

    private var entries: [[UInt8]: Entry] = [:]
    private var changes: UInt64 = 0
    /// The number of streams that responses wait for, by actor.
    private var awaited = UsageCounts<ActorName, Int>()
    private(set) var awaitedCount = 0
    /// The number of streams that wait for the owner of their slot.
    private var queued = UsageCounts<ClusterSlot, Int>()
    private var paused = UsageCounts<ClusterSlot, Int>()
    /// The names of the streams that this node resumes itself.
    private(set) var resumingHere: Set<[UInt8]> = []

    // MARK: Queries

    /// The streams in any order.
    var all: some Sequence<ForwardedStream> { entries.values.lazy.map(\.stream) }

    subscript(streamID: [UInt8]) -> ForwardedStream? { entries[streamID]?.stream }

    /// Returns the stream of an attempt that has had no outcome.
    subscript(attempt: Attempt) -> ForwardedStream? {
        entries[attempt.streamID].flatMap { $0.change == attempt.number ? $0.stream : nil }
    }

    /// Returns the current attempt for a stream; nil if there is no such stream.
    func attempt(for streamID: [UInt8]) -> Attempt? {
        entries[streamID].map { Attempt(streamID: streamID, number: $0.change) }
    }

    /// Returns whether responses of the actor's owner wait for a stream of the actor.
    func awaits(_ actor: ActorName) -> Bool { awaitedCount > 0 && awaited[actor] > 0 }

    func hasQueued(in slot: ClusterSlot) -> Bool { !queued.isEmpty && queued[slot] > 0 }
    func hasPaused(in slot: ClusterSlot) -> Bool { !paused.isEmpty && paused[slot] > 0 }

    /// Returns the names of the slot's streams in a phase, in the order in which they entered it.
    func names(in slot: ClusterSlot, _ phase: ForwardedStream.Phase) -> [[UInt8]] {
        entries.filter { $0.value.stream.slot == slot && $0.value.stream.phase == phase }
            .sorted { $0.value.change < $1.value.change }.map(\.key)
    }

    // MARK: Changes

    /// Adds a stream. Returns the stream that had its name, which has ended.
    @discardableResult
    mutating func insert(_ stream: ForwardedStream) -> ForwardedStream? {
        let former = removeEntry(stream.streamID)?.stream
        changes += 1
        entries[stream.streamID] = Entry(stream: stream, change: changes)
        count(stream, 1)
        return former
    }

    /// Removes a stream whose name another stream gets.
    mutating func remove(_ streamID: [UInt8]) -> ForwardedStream? { removeEntry(streamID)?.stream }

    /// Notes a version of a stream. Returns false if it is not for the client.
    mutating func receiveUpdate(of streamID: [UInt8], _ sequence: UInt64?, over channel: UInt64) -> Bool {
        guard let index = entries.index(forKey: streamID) else { return false }
        return entries.values[index].stream.handle(.updated(sequence: sequence, over: channel)) == .passOn
    }

    /// Handles an input of the stream with this name.
    mutating func handle(_ input: ForwardedStream.Input, of streamID: [UInt8]) -> ForwardedStream.Action {
        guard let entry = entries[streamID] else { return ForwardedStream.step(.ended, input).1 }
        var stream = entry.stream
        let action = stream.handle(input)
        guard stream.phase != entry.stream.phase else { return action }
        removeEntry(streamID)
        if stream.phase != .ended { insert(stream) }
        return action
    }

    @discardableResult
    private mutating func removeEntry(_ streamID: [UInt8]) -> Entry? {
        guard let entry = entries.removeValue(forKey: streamID) else { return nil }
        count(entry.stream, -1)
        return entry
    }

    private mutating func count(_ stream: ForwardedStream, _ number: Int) {
        if stream.phase.isAwaited {
            awaited.add(number, to: stream.actor)
            awaitedCount += number
        }
        switch stream.phase {
        case .queued: queued.add(number, to: stream.slot)
        case .paused: paused.add(number, to: stream.slot)
        case .resumingHere:
            if number > 0 { resumingHere.insert(stream.streamID) } else { resumingHere.remove(stream.streamID) }
        default: break
        }
    }
}

internal import Bytes
internal import TrebuchetWire

/// The content of a store write for a changed state.
enum CapturedState {
    /// The changes since the version that was captured last.
    case changes([LogEntry])
    /// The value as JSON, with its version.
    case snapshot([UInt8], UInt64)
}

/// The persistence of a state. In the actor's isolation, which is its reactor.
extension StateSource {
    /// The size in bytes of JSON below which the whole value is written, if its changes would have to be computed.
    private static var smallestCompared: Int { 4 << 10 }

    /// Sets the persister of the state.
    ///
    /// - Parameter states: the persister; nil ends persistence.
    func persist(by states: PersistedStates?) {
        persistence = states
        // The current value was loaded, or is the initial value.
        captured = version
        visibleVersion = version
    }

    /// Continues the log of an earlier process. Called before the first subscription.
    ///
    /// - Parameter log: the stored log, whose changes serve clients that resume.
    func resume(_ log: StoredLog) {
        resume(epoch: log.snapshot.epoch, after: log.earlierIncarnations)
        isInLog = true
        let byteCount = log.snapshot.bytes.count
        snapshotByteCount = byteCount
        // The state has not changed yet, so recording starts here.
        _ = takeChanges?(coder)
        let most = buffer ?? VersionLog.maximumDifferences
        let earlier = log.entries.count < most ? log.earlierEntries.suffix(most - log.entries.count) : []
        for entry in earlier + log.entries.suffix(most) {
            let patch = entry.bytes.withUnsafeBytes { message($0, from: entry.baseVersion, to: entry.version) }
            recent.append(
                StateUpdate(sequence: entry.version, current: nil, patch: patch, snapshotByteCount: byteCount))
        }
        if recent.position != version { recent.reset(at: version) }
        if !log.earlierIncarnations.isEmpty { recent.expectReturns() }
        recent.newest = StateUpdate(sequence: version, current: nil, patch: nil, snapshotByteCount: byteCount)
    }

    /// Schedules a write of changes made before persistence started.
    func scheduleEarlierChanges() {
        guard version > Self.firstVersion else { return }
        captured = 0
        persistence?.didChange()
    }

    /// Schedules a write of the first version of a state without conflation. The next owner of an unchanged actor then knows
    /// from where its subscribers continue.
    func scheduleFirstVersion() {
        guard buffer != nil, !isInLog, captured == version, let persistence, persistence.hasSuccessors else { return }
        captured = 0
        persistence.didChange()
    }

    /// Captures the state again after a failed write.
    func discardCapture() { captured = 0 }

    /// Returns the part of the state that the store lacks, and prepares the updates that follow the write; nil if the state has
    /// not changed since the last capture.
    ///
    /// - Parameter whole: whether the store needs the whole value instead of changes.
    func capture(whole: Bool) throws -> CapturedState? {
        guard captured < version, let persistence else { return nil }
        if recent.newest?.sequence != version {
            switch update() {
            case .failed(let error): throw error
            case .ended: throw TrebuchetError(.actorNotFound, "the actor no longer exists")
            default: break
            }
        }
        let capture: CapturedState
        if !whole, let entries = entries(since: captured), isWorthIt(entries) {
            capture = .changes(entries)
        } else {
            capture = .snapshot(try text(), version)
        }
        (captured, isInLog) = (version, true)
        let broadcasters = current
        // Before `visibleVersion` changes.
        let earlier: ArraySlice = buffer != nil && !filters.isEmpty ? unpublished.dropLast() : []
        if !broadcasters.isEmpty {
            let updates = unpublished
            persistence.publishAfterWrite(while: nil) { [version = version, weak self] in
                self?.visibleVersion = version
                for update in updates { for broadcaster in broadcasters { broadcaster.send(.update(update)) } }
            }
        } else {
            visibleVersion = version
        }
        feedEarlierVersions(earlier, persistence)
        if let feed = makeFilterUpdate(filters.current) { persistence.publishAfterWrite(while: nil, feed) }
        releaseUnused(isObserved: !broadcasters.isEmpty || isRetained)
        return capture
    }

    /// Passes the versions before the newest to streams of whole values without conflation, after the write.
    private func feedEarlierVersions(_ updates: ArraySlice<StateUpdate>, _ persistence: any StatePersister) {
        guard !updates.isEmpty else { return }
        let (list, memory) = (filters, memoryBudget)
        let whole = list.current.filter(\.filter.acceptsEverything)
        guard !whole.isEmpty else { return }
        persistence.publishAfterWrite(while: nil) {
            for update in updates {
                guard let text = update.current else { continue }
                list.feed(FilterableVersion(text, sequence: update.sequence, memory: memory), to: whole)
            }
        }
    }

    /// Returns the changes from a version to the newest; nil if they are unknown.
    private func entries(since version: UInt64) -> [LogEntry]? {
        guard let updates = recent.updates(since: version), !updates.isEmpty else { return nil }
        let entries = updates.compactMap(entry)
        return entries.count == updates.count ? entries : nil
    }

    /// The updates that subscribers have not received: at least the newest.
    private var unpublished: [StateUpdate] {
        guard let newest = recent.newest else { return [] }
        // The last update with its value, if that was encoded.
        return (recent.updates(since: visibleVersion)?.dropLast() ?? []) + [newest]
    }

    /// Returns whether changes are stored instead of the whole value. Without conflation they are: a subscriber that resumes
    /// after a restart, or at the next owner, receives each version that it missed.
    private func isWorthIt(_ entries: [LogEntry]) -> Bool {
        if takeChanges == nil, buffer == nil, snapshotByteCount < Self.smallestCompared { return false }
        let least = buffer == nil ? 0 : MemoryLog.maximumEarlierEntryBytes
        return entries.reduce(0) { $0 + $1.bytes.count } < max(snapshotByteCount, least)
    }

    /// The changes that lead to the newest version, oldest first. Written with a whole value, they let subscribers resume at
    /// the next owner. At most `MemoryLog.maximumEarlierEntryBytes`; empty with conflation, or if no other node can own the actor.
    var leadingEntries: [LogEntry] {
        guard buffer != nil, recent.position == version, persistence?.hasSuccessors == true else { return [] }
        var entries: [LogEntry] = []
        var bytes = 0
        for update in recent.retainedUpdates.reversed() {
            guard let entry = entry(update) else { break }
            bytes += entry.bytes.count
            guard bytes <= MemoryLog.maximumEarlierEntryBytes else { break }
            entries.append(entry)
        }
        return entries.reversed()
    }

    /// Returns the log entry of an update. With conflation it is nil for an update without a delta; without conflation the
    /// change then is the whole value.
    private func entry(_ update: StateUpdate) -> LogEntry? {
        if let patch = update.patch {
            let text = StreamDataEncoding.patch(
                inSuffix: patch.suffix.bytes, sequence: patch.sequence, base: patch.base)
            return LogEntry(version: patch.sequence, baseVersion: patch.base, bytes: Array(text))
        }
        guard buffer != nil, let data = update.data else { return nil }
        let bytes = Array(#"[{"op":"replace","path":"","value":"#.utf8) + data + Array("}]".utf8)
        return LogEntry(version: update.sequence, baseVersion: update.sequence - 1, bytes: bytes)
    }

    /// Releases the text of the newest version, unless the next version is compared with it or there are subscribers.
    private func releaseUnused(isObserved: Bool) {
        guard !isObserved else { return }
        if takeChanges != nil {
            recent.newest = recent.newest?.withoutSnapshot
        } else if snapshotByteCount < Self.smallestCompared, buffer == nil {
            recent.discardVersions()
        }
    }

    /// Returns the value of the newest version as JSON.
    private func text() throws -> [UInt8] {
        if let newest = recent.newest, newest.sequence == version, let data = newest.data { return Array(data) }
        var data = ByteBuffer()
        do {
            if try property.encode(with: coder, into: &data) { return Array(data.bytes) }
        } catch {
            throw unencodable(error)
        }
        throw TrebuchetError(.actorNotFound, "the actor no longer exists")
    }

    /// Returns a copy of the captured newest version, which can be encoded on any thread; nil if the actor was released.
    func copy() -> StateCopy? {
        if let newest = recent.newest, newest.sequence == version, let current = newest.current {
            let sequence = version
            return { _ in Array(StreamDataEncoding.data(inSuffix: current.bytes, sequence: sequence)) }
        }
        return property.copy()
    }
}

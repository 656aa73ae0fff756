internal import Bytes
internal import TrebuchetWire

/// What a store is given of a state that has changed.
enum CapturedState {
    /// What leads on from the version that it was given last, change by change.
    case changes([LogEntry])
    /// The value in JSON, of a version.
    case whole([UInt8], UInt64)
}

/// A state that is kept in a store. All in the actor's isolation, which is its reactor.
extension StateSource {
    /// Below this many bytes of JSON a value is written whole, where its changes would have to be searched for.
    private static var smallestCompared: Int { 4 << 10 }

    /// - Parameter states: who writes the state; nil for nobody.
    func persist(by states: PersistedStates?) {
        persistence = states
        // What it has now was loaded, or is what it begins with.
        captured = version
        shown = version
    }

    /// Goes on where the log of an earlier process ends. Before anybody observes it.
    ///
    /// - Parameter log: its changes are for clients that come back and have missed some.
    func resume(_ log: StoredLog) {
        resume(epoch: log.snapshot.epoch, after: log.earlier)
        isInLog = true
        let byteCount = log.snapshot.bytes.count
        wholeByteCount = byteCount
        // Nothing has changed so far: what changes from now on begins here.
        _ = takeChanges?(coder())
        let most = buffer ?? VersionLog.mostDifferences
        let earlier = log.entries.count < most ? log.passed.suffix(most - log.entries.count) : []
        for entry in earlier + log.entries.suffix(most) {
            let patch = entry.bytes.withUnsafeBytes { message($0, from: entry.base, to: entry.number) }
            recent.append(StateUpdate(sequence: entry.number, current: nil, patch: patch, wholeByteCount: byteCount))
        }
        if recent.position != version { recent.begin(at: version) }
        if !log.earlier.isEmpty { recent.expectReturns() }
        recent.newest = StateUpdate(sequence: version, current: nil, patch: nil, wholeByteCount: byteCount)
    }

    /// Changes that were made before there was anybody to write them are written now.
    func keepEarlierChanges() {
        guard version > Self.firstVersion else { return }
        captured = 0
        persistence?.didChange()
    }

    /// Where each version counts, the next owner of an actor that has not changed yet is to know from where its observers go on.
    func keepFirstVersion() {
        guard buffer != nil, !isInLog, captured == version, let persistence, persistence.hasSuccessors else { return }
        captured = 0
        persistence.didChange()
    }

    /// What was captured was not kept.
    func captureAgain() { captured = 0 }

    /// What a store lacks of the state, with what its observers are sent made ready behind the write; nil when it has not
    /// changed since the last capture.
    ///
    /// - Parameter whole: whether the store must have the whole value, and not its changes.
    func capture(whole: Bool) throws -> CapturedState? {
        guard captured < version, let persistence else { return nil }
        if recent.newest?.sequence != version {
            switch update() {
            case .failed(let error): throw error
            case .ended: throw TrebuchetError(.actorNotFound, "the actor is gone")
            default: break
            }
        }
        let kept: CapturedState
        if !whole, let entries = entries(since: captured), isWorthIt(entries) {
            kept = .changes(entries)
        } else {
            kept = .whole(try text(), version)
        }
        (captured, isInLog) = (version, true)
        let broadcasters = current
        if !broadcasters.isEmpty {
            let updates = unshown
            persistence.show(while: nil) { [version = version, weak self] in
                self?.shown = version
                for update in updates { for broadcaster in broadcasters { broadcaster.send(.update(update)) } }
            }
        } else {
            shown = version
        }
        if let feed = feeding(filters.current) { persistence.show(while: nil, feed) }
        forgetWhatIsNotUsed(isObserved: !broadcasters.isEmpty || isKept)
        return kept
    }

    /// What leads from a version to the newest, change by change; nil when that is not known.
    private func entries(since version: UInt64) -> [LogEntry]? {
        guard let updates = recent.updates(since: version), !updates.isEmpty else { return nil }
        let entries = updates.compactMap(entry)
        return entries.count == updates.count ? entries : nil
    }

    /// What those who observe have not been sent: the newest at least.
    private var unshown: [StateUpdate] {
        guard let newest = recent.newest else { return [] }
        // The last one with its value, where that was encoded.
        return (recent.updates(since: shown)?.dropLast() ?? []) + [newest]
    }

    /// Whether changes are what the store is to have, rather than the whole value. Where each version counts they are: a subscriber
    /// that resumes after a restart, or at the next owner, gets each version that it missed.
    private func isWorthIt(_ entries: [LogEntry]) -> Bool {
        if takeChanges == nil, buffer == nil, wholeByteCount < Self.smallestCompared { return false }
        let least = buffer == nil ? 0 : MemoryLog.mostPassedBytes
        return entries.reduce(0) { $0 + $1.bytes.count } < max(wholeByteCount, least)
    }

    /// The changes that lead to the newest version, oldest first. Written beside a whole value, they let subscribers resume at the next owner.
    /// At most `MemoryLog.mostPassedBytes`; empty where only the newest version counts, or no other owner can follow.
    var leadingEntries: [LogEntry] {
        guard buffer != nil, recent.position == version, persistence?.hasSuccessors == true else { return [] }
        var entries: [LogEntry] = []
        var bytes = 0
        for update in recent.kept.reversed() {
            guard let entry = entry(update) else { break }
            bytes += entry.bytes.count
            guard bytes <= MemoryLog.mostPassedBytes else { break }
            entries.append(entry)
        }
        return entries.reversed()
    }

    /// Nil for a version that is known by its whole value alone, unless each version counts: then the change is that value.
    private func entry(_ update: StateUpdate) -> LogEntry? {
        if let patch = update.patch {
            let text = StreamDataParts.patch(
                inSuffix: patch.suffix.bytes, sequence: patch.sequence, base: patch.base)
            return LogEntry(number: patch.sequence, base: patch.base, bytes: Array(text))
        }
        guard buffer != nil, let data = update.data else { return nil }
        let bytes = Array(#"[{"op":"replace","path":"","value":"#.utf8) + data + Array("}]".utf8)
        return LogEntry(number: update.sequence, base: update.sequence - 1, bytes: bytes)
    }

    /// The text of the newest version stays where the next one is compared with it, or somebody observes.
    private func forgetWhatIsNotUsed(isObserved: Bool) {
        guard !isObserved else { return }
        if takeChanges != nil {
            recent.newest = recent.newest?.withoutWhole
        } else if wholeByteCount < Self.smallestCompared, buffer == nil {
            recent.forget()
        }
    }

    /// The value of the newest version, in JSON.
    private func text() throws -> [UInt8] {
        if let newest = recent.newest, newest.sequence == version, let data = newest.data { return Array(data) }
        var data = ByteBuffer()
        do {
            if try property.encode(with: coder(), into: &data) { return Array(data.bytes) }
        } catch {
            throw unencodable(error)
        }
        throw TrebuchetError(.actorNotFound, "the actor is gone")
    }

    /// What writes the value of the newest version, which was captured, from anywhere; nil when the actor is gone.
    func copy() -> StateCopy? {
        if let newest = recent.newest, newest.sequence == version, let current = newest.current {
            let sequence = version
            return { _ in Array(StreamDataParts.data(inSuffix: current.bytes, sequence: sequence)) }
        }
        return property.copy()
    }
}

internal import Platform
internal import TrebuchetActors
internal import TrebuchetCluster

/// Reads of the current persisted states of other nodes' actors.
extension EngineStore {
    func readLog(at key: StateKey, after seen: ActorLogPosition?) async throws(StateStoreError) -> ActorLogReadResult {
        guard let actor = key.partition else { throw StateStoreError(.failed, "'\(key)' belongs to no actor") }
        let partition = ActorLog(actor)
        if let seen, let feed = try await changeFeed(of: key, in: partition, after: seen) { return feed }
        let (contents, _, whole, _) = try await read(partition)
        return ActorLogReadResult(.complete(contents.log(key)), whole)
    }

    /// Returns the changes after `seen`; nil where the earlier entries were removed or the changes are more than appended entries. The
    /// caller then reads the whole log.
    private func changeFeed(
        of key: StateKey, in partition: ActorLog, after seen: ActorLogPosition
    ) async throws(StateStoreError) -> ActorLogReadResult? {
        // Starts with the last seen entry: a coordination store that has lost it may have another one at its position.
        var position = seen.entry.map { LogPosition(fence: $0.fence, offset: $0.offset) } ?? seen.position
        var isThere = seen.entry == nil
        var whole = seen
        var parts = SplitLogEntry()
        var found: [LogEntry] = []
        while true {
            let reading: LogReadResult
            do throws(ClusterEngineError) {
                reading = try await engine.read(partition.log, after: position)
            } catch {
                throw Self.failure(error, partition)
            }
            // Every log starts before its first entry, even one that has lost all entries.
            guard reading.start == .resumed || position == .start && reading.start == .start else { return nil }
            for entry in reading.entries {
                let before = position
                position = entry.position
                if !isThere {
                    guard position == seen.position, ActorLogPosition(entry, behind: before).entry == seen.entry else {
                        return nil
                    }
                    isThere = true
                    continue
                }
                guard let payload = parts.append(entry.payload) else { continue }
                whole = ActorLogPosition(entry, behind: before)
                for item in try Self.items(payload, partition) {
                    guard case .write(let write) = item, write.key == key else { continue }
                    switch write.operation {
                    case .append(let entry): found.append(entry)
                    // A snapshot contains only known changes.
                    case .snapshot, .snapshotPart: break
                    default: return nil
                    }
                }
            }
            guard !reading.isComplete else { return isThere ? ActorLogReadResult(.entries(found), whole) : nil }
        }
    }
}

extension ActorLogPosition {
    var position: LogPosition { LogPosition(fence: fence, offset: offset) }

    /// The position of an unknown entry.
    init(_ position: LogPosition) { self.init(fence: position.fence, offset: position.offset) }

    /// - Parameter before: The position of the previous entry.
    init(_ entry: ClusterLogEntry, behind before: LogPosition) {
        var digest = StableDigest()
        entry.payload.withUnsafeBytes { digest.combine($0) }
        self.init(
            fence: entry.position.fence, offset: entry.position.offset,
            entry: Entry(behind: before.fence, before.offset, digest: digest.value))
    }
}

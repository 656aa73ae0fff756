internal import Platform
internal import Relays
internal import Synchronization
internal import Trebuchet
internal import TrebuchetActors
internal import TrebuchetCluster

/// Persists the states of a cluster's actors in logs of the coordination store that its nodes share. Each actor has one log, in the
/// slot of its name: the next owner of the slot continues it, and the previous one cannot write to it any more.
///
/// One write of an actor is one entry, or counts as one (`SplitLogEntry`). Only the positions of logs and the newest entries stay in
/// memory. The times of alarms are also rows in tables of their slots (`AlarmRowIndex`), by which the owner finds them. The store
/// contains no data without an actor, and no states of actors that every node has separately.
final class EngineStore: PerActorStore {
    /// The maximum number of actors whose contents are in memory after loading.
    private static let maximumLoaded = 64
    /// The maximum number of actors whose log position is known; clients may request any name.
    private static let maximumPartitions = 65_536
    /// Bytes of acknowledged entries that are kept, in case the coordination store loses them.
    private static let maximumRecentBytes = 32 << 20

    let engine: any ClusterEngine
    let lease: @Sendable (ClusterSlot) -> SlotLease?
    private let known: @Sendable (ClusterSlot) -> SlotLease?
    let didLose: @Sendable (SlotLease, ClusterEngineError) -> Void
    private let maximumPartitions: Int
    private let partitions = Mutex<[ByteText: ActorLog]>([:])
    /// The partitions that were loaded last.
    private let loaded = Mutex<[ActorLog]>([])
    let recent: RecentEntries
    /// The rows of actors with alarms.
    let alarmRows: AlarmRowIndex
    /// Indicates whether the node has continued after a data loss: then it does not know of any log that it is in the incarnation
    /// that it has started.
    private let hasLost = Mutex(false)
    let reports = Mutex(Reports())

    /// - Parameters:
    ///   - lease: The node's current lease for a slot; nil for slots that it does not own, and for a lease to be renewed first.
    ///   - known: The node's lease for a slot even if it has to be renewed first. Default: `lease`.
    ///   - maximumPartitions: The maximum number of actors whose log position is known.
    ///   - mostRecentBytes: Bytes of acknowledged entries that are kept, in case the coordination store loses them.
    ///   - didLose: Called when the coordination store has refused a write with `dataLoss`, or has lost entries that are not kept.
    init(
        _ engine: any ClusterEngine, maximumPartitions: Int = EngineStore.maximumPartitions,
        mostRecentBytes: Int = EngineStore.maximumRecentBytes,
        didLose: @escaping @Sendable (SlotLease, ClusterEngineError) -> Void = { _, _ in },
        known: (@Sendable (ClusterSlot) -> SlotLease?)? = nil,
        lease: @escaping @Sendable (ClusterSlot) -> SlotLease?
    ) {
        self.engine = engine
        self.lease = lease
        self.known = known ?? lease
        self.didLose = didLose
        self.maximumPartitions = maximumPartitions
        recent = RecentEntries(maximumBytes: mostRecentBytes)
        let owned = known ?? lease
        alarmRows = AlarmRowIndex(engine) { owned($0) != nil }
    }

    /// The number of logs whose position is known.
    var partitionCount: Int { partitions.withLock { $0.count } }
    /// The names of their actors.
    var knownPartitions: [String] { partitions.withLock { $0.values.map(\.name) } }

    /// Discards all knowledge of logs: the contents of the coordination store count from now on.
    func forgetAll() {
        hasLost.withLock { $0 = true }
        for partition in partitions.withLock({ Array($0.values) }) { partition.discardContents(all: true) }
    }

    /// Returns a partition, in use until `releaseUse`.
    private func partition(_ name: String) -> ActorLog {
        partitions.withLock { partitions in
            let known = partitions[ByteText(name)]
            // The position of a forgotten log is read again.
            if known == nil, partitions.count >= maximumPartitions {
                partitions = partitions.filter { $0.value.isNeeded }
                // Frees a quarter, so that the table is not searched for each requested name.
                if partitions.count > maximumPartitions / 4 * 3 { partitions = partitions.filter { $0.value.isInUse } }
            }
            let partition = known ?? ActorLog(name)
            partition.enter()
            partitions[ByteText(name)] = partition
            return partition
        }
    }

    // MARK: StateStore

    func get(_ keys: [StateKey]) async throws(StateStoreError) -> [StateKey: [UInt8]] {
        var found: [StateKey: [UInt8]] = [:]
        for (name, keys) in Dictionary(grouping: keys, by: { $0.partition.map { ByteText($0) } }) {
            guard let name else { continue }
            let contents = try await contents(of: name.text)
            for key in keys { found[key] = contents.value(key) }
        }
        return found
    }

    func list(
        _ namespace: String, prefix: String, after: String?, limit: Int
    ) async throws(StateStoreError) -> [StateEntry] {
        []
    }

    func readLog(_ key: StateKey) async throws(StateStoreError) -> StoredLog? {
        guard let name = key.partition else { return nil }
        return try await contents(of: name).log(key)
    }

    func write(_ writes: [StateWrite]) async throws(StateStoreError) {
        let groups = Dictionary(grouping: writes) { $0.key.partition.map { ByteText($0) } }
        for (name, writes) in groups {
            guard let name else {
                throw StateStoreError(
                    .failed, "'\(writes[0].key)' belongs to no actor; the coordination store has only logs of actors")
            }
            try await write(writes, to: name.text)
        }
    }

    // Also under a lease to be renewed first: the fence stays the same, and each write needs a valid lease.
    func ownership(of actor: String) -> UInt64 { known(ClusterSlot(of: actor))?.fence ?? 0 }

    func remove(_ actor: String, ownedUnder ownership: UInt64) async throws(StateStoreError) {
        try await with(actor) { partition throws(StateStoreError) in
            guard let lease = lease(partition.log.slot), lease.fence == ownership else { return }
            let (contents, top, _) = try await readOwn(partition, under: lease)
            // The result of a compaction in progress belongs to the existing log.
            guard contents.isEmpty, !partition.isCompacting, top != .start else { return }
            try await remove(partition, at: top.offset, under: lease)
        }
    }

    // MARK: One actor

    /// Runs `body` with exclusive access to one actor's log: each user continues at the position of the previous one.
    func with<Result>(
        _ name: String, _ body: (ActorLog) async throws(StateStoreError) -> Result
    ) async throws(StateStoreError) -> Result {
        let partition = partition(name)
        await partition.turn.wait()
        let outcome: Swift.Result<Result, StateStoreError>
        do throws(StateStoreError) {
            outcome = .success(try await body(partition))
        } catch {
            outcome = .failure(error)
        }
        await partition.turn.signal()
        partition.releaseUse()
        return try outcome.get()
    }

    private func write(_ writes: [StateWrite], to name: String) async throws(StateStoreError) {
        try await with(name) { partition throws(StateStoreError) in
            guard let lease = lease(partition.log.slot) else {
                guard known(partition.log.slot) == nil else { throw Self.isRenewing(name) }
                partition.discardContents()
                // Expired responses belong to the current owner. A deletion by an actor is under its ownership.
                if writes.allSatisfy({ $0.operation == .delete && $0.ownership == nil }) { return }
                throw Self.isNotOwned(name)
            }
            if let ownership = writes.first?.ownership, ownership != lease.fence { throw Self.leaseEnded(name) }
            let known = partition.position(under: lease.fence)
            let position: LogPosition
            if let known {
                position = known
            } else {
                // Entries of unknown writers must not be overwritten.
                var (contents, found) = try await load(partition, under: lease)
                position = found
                do throws(StateStoreError) { try contents.apply(writes.map { .write($0) }) } catch {
                    throw Self.isContinued(name)
                }
            }
            guard !partition.isTooLarge else {
                throw StateStoreError(
                    .tooLarge,
                    "the log of actor '\(name)' cannot be compacted: its snapshot exceeds the size limit of the coordination store"
                )
            }
            let rows = AlarmRowChange(
                writes, of: name, in: partition.alarmRows(under: lease.fence),
                at: LogPosition(fence: lease.fence, offset: position.offset))
            guard let rows else {
                try await append(ActorLogEntry.bytes(of: writes), behind: position, to: partition, under: lease)
                return compact(partition, under: lease)
            }
            try await append(rows, behind: position, to: partition, under: lease)
            compact(partition, under: lease)
        }
    }

    /// Appends an entry with alarms, after inserting their rows, and removes rows without alarms after it.
    private func append(
        _ change: AlarmRowChange, behind position: LogPosition, to partition: ActorLog, under lease: SlotLease
    ) async throws(StateStoreError) {
        try await insertRows(change.inserted, partition, lease)
        // Collected before the append, which proves that this node is the owner: rows of a later owner are not removed.
        let others = alarmRows.rows(change.removedTimes, of: partition.name, in: lease.slot)
        try await append(ActorLogEntry.bytes(of: change.writes), behind: position, to: partition, under: lease)
        partition.setAlarmRows(change.rows, under: lease.fence)
        let removed = change.removed + others.filter { !change.removed.contains($0) }
        alarmRows.remove(removed, in: lease.slot)
    }

    private func insertRows(
        _ rows: [AlarmRow], _ partition: ActorLog, _ lease: SlotLease
    ) async throws(StateStoreError) {
        try await performRequest(partition, lease) { () async throws(ClusterEngineError) in
            try await alarmRows.insert(rows, in: lease.slot)
        }
    }

    /// Inserts the rows of all alarms of a log that lost entries: the coordination store may have lost the rows too.
    func restoreRows(_ partition: ActorLog, under lease: SlotLease) async throws(StateStoreError) {
        let rows = partition.alarmRows(under: lease.fence)
        try await insertRows(
            rows.map { SlotAlarmRows.row($0.key, partition.name, at: $0.value) }, partition, lease)
    }

    /// Appends an entry, in parts where it is large.
    @discardableResult
    private func append(
        _ entry: [UInt8], behind position: LogPosition, to partition: ActorLog, under lease: SlotLease
    ) async throws(StateStoreError) -> LogPosition {
        var position = position
        let parts = SplitLogEntry.split(entry)
        for part in parts {
            do throws(StateStoreError) {
                position = try await appendCompacting(part, behind: position, to: partition, under: lease)
            } catch {
                // A part may be stored; it has no effect without the others.
                if parts.count > 1 { partition.discardContents() }
                throw error
            }
            partition.didAppend(part.count, at: position, under: lease.fence)
        }
        return position
    }

    /// Appends an entry, and compacts a full log first.
    private func appendCompacting(
        _ entry: [UInt8], behind position: LogPosition, to partition: ActorLog, under lease: SlotLease
    ) async throws(StateStoreError) -> LogPosition {
        do throws(StateStoreError) {
            return try await appendOne(entry, behind: position, to: partition, under: lease)
        } catch {
            guard error.code == .full, let compacted = try? await compactNow(partition, under: lease) else {
                throw error
            }
            partition.didCompact(compacted)
            return try await appendOne(entry, behind: position, to: partition, under: lease)
        }
    }

    /// - Parameter isRestored: True if the log was compared with the entries that this node knows.
    private func appendOne(
        _ entry: [UInt8], behind position: LogPosition, to partition: ActorLog, under lease: SlotLease,
        isRestored: Bool = false
    ) async throws(StateStoreError) -> LogPosition {
        let outcome: AppendOutcome
        do throws(ClusterEngineError) {
            outcome = try await engine.append(
                LogAppend(entry, expectedHead: position.offset), to: partition.log, lease: lease)
        } catch {
            if error.code == .dataLoss { didLose(lease, error) }
            guard error.code == .unknownOutcome else { throw Self.failure(error, partition) }
            return try await find(entry, behind: position, in: partition, under: lease)
        }
        switch outcome {
        case .accepted(let offset):
            let position = LogPosition(fence: lease.fence, offset: offset)
            recent.insert(entry, to: partition, at: position)
            return position
        case .headMismatch(let top) where top < position.offset && !isRestored:
            try await restore(partition, from: top, under: lease)
            return try await appendOne(entry, behind: position, to: partition, under: lease, isRestored: true)
        case .full:
            throw StateStoreError(.full, "the log of actor '\(partition.name)' is full and could not be compacted")
        case .fenced:
            partition.discardContents()
            throw Self.leaseEnded(partition.name)
        case .leaseExpired, .headMismatch, .repeated:
            partition.discardContents()
            throw StateStoreError(.unavailable, "the log of actor '\(partition.name)' is not at the expected position")
        }
    }

    /// Looks for an entry whose append had no response: no other entry is written before that.
    private func find(
        _ entry: [UInt8], behind position: LogPosition, in partition: ActorLog, under lease: SlotLease
    ) async throws(StateStoreError) -> LogPosition {
        // If this throws, the position must be read again.
        partition.discardContents()
        return try await performRequest(partition, lease) { () async throws(ClusterEngineError) in
            let reading = try await engine.read(partition.log, after: position)
            guard reading.start == .resumed, let first = reading.entries.first, first.payload == entry,
                first.position.fence == lease.fence
            else {
                throw ClusterEngineError(.unavailable, "the coordination store rejected it")
            }
            // A later part confirms it, and no other entry may follow it.
            guard engine.confirmsWrites, !SplitLogEntry.isFollowed(entry) else {
                recent.insert(entry, to: partition, at: first.position)
                return first.position
            }
            // The entry is stored, but may be lost with its server: a confirmed entry after it shows that it is not. Until then the
            // node does not count it as known, because losing it is no loss of data.
            let mark = LogAppend(ActorLogEntry.bytes(of: []), expectedHead: first.position.offset)
            guard case .accepted(let offset) = try await engine.append(mark, to: partition.log, lease: lease) else {
                throw ClusterEngineError(.unknownOutcome, "the coordination store has it but did not confirm it")
            }
            recent.insert(entry, to: partition, at: first.position)
            let position = LogPosition(fence: lease.fence, offset: offset)
            recent.insert(mark.payload ?? [], to: partition, at: position)
            return position
        }
    }

    func contents(of name: String) async throws(StateStoreError) -> ActorLogContents {
        try await with(name) { partition throws(StateStoreError) in
            guard let lease = lease(partition.log.slot) else {
                throw known(partition.log.slot) == nil ? Self.isNotOwned(name) : Self.isRenewing(name)
            }
            if let loaded = partition.loaded(under: lease.fence) { return loaded }
            return try await load(partition, under: lease).contents
        }
    }

    private func load(
        _ partition: ActorLog, under lease: SlotLease
    ) async throws(StateStoreError) -> (contents: ActorLogContents, position: LogPosition) {
        var (contents, top, size) = try await readOwn(partition, under: lease)
        let isContinuous = partition.isContinuous(at: top, under: lease.fence, hasLost: hasLost.withLock { $0 })
        try await recordLogEnd(top, of: partition, under: lease)
        partition.setAlarmRows(contents.alarmRows, under: lease.fence)
        // Written before the contents are visible: later entries are known as this incarnation's, should the coordination store lose
        // the end of it.
        if contents.hasLogs, !isContinuous {
            let incarnation = StreamEpoch.make()
            let entry = ActorLogEntry.bytes(of: [], incarnation: incarnation)
            top = try await appendCompacting(entry, behind: top, to: partition, under: lease)
            size.addEntry(bytes: entry.count)
            contents.startIncarnation(incarnation)
        } else if engine.confirmsWrites, top != .start {
            // The newest entry may not be confirmed: a reader of it must find it again.
            let mark = ActorLogEntry.bytes(of: [])
            top = try await appendCompacting(mark, behind: top, to: partition, under: lease)
            size.addEntry(bytes: mark.count)
        }
        partition.didLoad(contents, at: top, size, under: lease.fence)
        let oldest = loaded.withLock { loaded -> ActorLog? in
            loaded.removeAll { $0 === partition }
            loaded.append(partition)
            return loaded.count > Self.maximumLoaded ? loaded.removeFirst() : nil
        }
        oldest?.unload()
        return (contents, top)
    }

    /// - Returns: The contents of the log, its end, and the end of its complete entries.
    func read(
        _ partition: ActorLog
    ) async throws(StateStoreError) -> (ActorLogContents, top: LogPosition, whole: ActorLogPosition, ActorLogSize) {
        var contents = ActorLogContents()
        var top: LogPosition?
        var whole = ActorLogPosition(.start)
        var size = ActorLogSize()
        var parts = SplitLogEntry()
        do {
            while true {
                let reading = try await engine.read(partition.log, after: top)
                if reading.start != .resumed {
                    (contents, size, parts) = (ActorLogContents(), ActorLogSize(), SplitLogEntry())
                }
                if case .snapshot(let snapshot) = reading.start {
                    try contents.apply(try Self.items(snapshot.bytes, partition))
                    size.snapshot = snapshot.bytes.count
                    (top, whole) = (snapshot.position, ActorLogPosition(snapshot.position))
                }
                for entry in reading.entries {
                    size.addEntry(bytes: entry.payload.count)
                    defer { top = entry.position }
                    guard let payload = parts.append(entry.payload) else { continue }
                    try contents.apply(try Self.items(payload, partition))
                    whole = ActorLogPosition(entry, behind: top ?? .start)
                }
                if reading.isComplete { return (contents, top ?? .start, whole, size) }
            }
        } catch let error as ClusterEngineError {
            throw Self.failure(error, partition)
        } catch let error as StateStoreError where error.code == .conflict {
            throw StateStoreError(.damaged, "the log of actor '\(partition.name)' has changes with a gap")
        } catch {
            throw error as? StateStoreError ?? StateStoreError(.failed, "\(error)")
        }
    }

    static func items(_ entry: [UInt8], _ partition: ActorLog) throws(StateStoreError) -> [ActorLogEntry.Item] {
        guard let items = ActorLogEntry.items(entry, of: partition.name) else {
            throw StateStoreError(.damaged, "the log of actor '\(partition.name)' has an invalid entry")
        }
        return items
    }
}

/// The errors for callers when the coordination store fails.
extension EngineStore {
    /// The error while this node has no lease for the slot of an actor: another node may own it, or no node yet.
    static func isNotOwned(_ name: String) -> StateStoreError {
        StateStoreError(.conflict, "this node does not own actor '\(name)'")
    }

    /// The error of a write under an earlier lease: this or another node has owned the actor since.
    static func leaseEnded(_ name: String) -> StateStoreError {
        StateStoreError(.conflict, "the lease under which actor '\(name)' was activated has ended")
    }

    /// The error of a write that does not continue the log.
    static func isContinued(_ name: String) -> StateStoreError {
        StateStoreError(.conflict, "the log of actor '\(name)' was continued by another activation")
    }

    /// The error while the lease of an owned slot waits for its renewal: unlike `isNotOwned`, the caller retries here.
    static func isRenewing(_ name: String) -> StateStoreError {
        StateStoreError(.unavailable, "the lease of actor '\(name)' is not renewed yet")
    }

    static func failure(_ error: ClusterEngineError, _ partition: ActorLog) -> StateStoreError {
        let code: StateStoreError.Code =
            switch error.code {
            case .tooLarge: .tooLarge
            case .closed: .closed
            case .unavailable, .unknownOutcome, .overloaded: .unavailable
            default: .failed
            }
        return StateStoreError(code, error.textForClients)
    }
}

extension ClusterEngineError {
    /// The message without the address of the coordination store and its texts, which are in the log of the node.
    var textForClients: String {
        switch code {
        case .unavailable: "the coordination store is unreachable"
        case .unknownOutcome: "the coordination store did not respond"
        case .overloaded: "the queue to the coordination store is full"
        case .tooLarge: "the write exceeds the size limit of the coordination store"
        case .closed: "the node has left the cluster"
        case .dataLoss: "the coordination store has lost data"
        default: "the coordination store failed (\(code))"
        }
    }
}

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

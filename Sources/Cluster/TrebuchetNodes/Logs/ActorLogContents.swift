internal import Platform
internal import TrebuchetActors

/// The contents that the entries of an actor's log produce, in order.
struct ActorLogContents {
    /// The maximum number and size of the newest idempotency records that an actor's log keeps when it is compacted. Older records are
    /// reduced to their call numbers.
    static let maximumCalls = 16_384
    static let maximumCallBytes = 4 << 20
    /// The size in bytes of a compacted log up to which it includes changes that only readers need.
    private static let maximumWithEarlierEntries = 8 << 20
    /// The number of latest connections whose removed calls are recorded.
    static let maximumConnections = 1_024

    private var values: [StateKey: [UInt8]] = [:]
    private var logs: [StateKey: MemoryLog] = [:]
    private var incarnations: [StateKey: LogIncarnations] = [:]
    /// Calls, the oldest first; a call that was written twice has its first position.
    private var calls: [StateKey] = []
    private var removedCalls = CompactedCalls()

    /// Returns the value of a key. The record of a removed call is an empty value, which is no response.
    func value(_ key: StateKey) -> [UInt8]? { values[key] ?? (removedCalls.contains(key) ? [] : nil) }

    func values(in namespace: String) -> [String: [UInt8]] {
        var found: [String: [UInt8]] = [:]
        for (key, value) in values where key.namespace.utf8.elementsEqual(namespace.utf8) { found[key.name] = value }
        return found
    }

    var earlierCalls: IdempotencyIndex {
        var earlier = IdempotencyIndex()
        for key in calls where values[key] != nil { earlier.insert(key) }
        for (connection, number) in removedCalls.newest(.max) { earlier.recordEvictedCalls(connection, upTo: number) }
        return earlier
    }

    /// Indicates whether the log can be removed without a loss. Removed calls matter for late repeats.
    var isEmpty: Bool { values.isEmpty && logs.isEmpty && removedCalls.isEmpty }

    var hasLogs: Bool { !logs.isEmpty }

    /// Returns a log in its current incarnation.
    func log(_ key: StateKey) -> StoredLog? {
        guard let stored = logs[key]?.stored, let incarnations = incarnations[key] else { return nil }
        let snapshot = LogSnapshot(
            epoch: incarnations.current, version: stored.snapshot.version, bytes: stored.snapshot.bytes)
        return StoredLog(
            snapshot: snapshot, entries: stored.entries, earlierIncarnations: incarnations.earlier,
            earlierEntries: logs[key]?.earlierEntries ?? [])
    }

    /// - Throws: `conflict` for writes that do not follow.
    mutating func apply(_ items: [ActorLogEntry.Item]) throws(StateStoreError) {
        for item in items {
            switch item {
            case .write(let write): try apply(write)
            case .incarnation(let epoch): startIncarnation(epoch)
            case .incarnations(let incarnations, let key): self.incarnations[key] = incarnations
            case .removedCalls(let connection, let number): removedCalls.addCall(connection, number)
            case .earlierEntry(let entry, let key): logs[key]?.appendEarlierEntry(entry)
            }
        }
    }

    /// Starts a new incarnation of all logs.
    mutating func startIncarnation(_ epoch: String) {
        for (key, log) in logs {
            guard let last = log.stored?.lastVersion else { continue }
            incarnations[key]?.startIncarnation(epoch, after: last)
            // A snapshot by its owner then belongs to the current contents.
            logs[key]?.startEpoch(epoch)
        }
    }

    private mutating func apply(_ write: StateWrite) throws(StateStoreError) {
        switch write.operation {
        case .put(let value):
            let isNew = values.updateValue(value, forKey: write.key) == nil
            if isNew, write.key.namespace == IdempotencyNamespace.name { calls.append(write.key) }
        case .delete:
            values[write.key] = nil
            removedCalls.addState(write.key)
        default:
            var log = logs.removeValue(forKey: write.key) ?? MemoryLog(keepsEarlierEntries: true)
            defer { if !log.isEmpty { logs[write.key] = log } }
            try log.apply(write)
            // A log that is rewritten in its epoch after a failure keeps its earlier incarnations.
            if case .snapshot(let snapshot) = write.operation { recordEpoch(snapshot.epoch, of: write.key) }
        }
    }

    /// Starts incarnations from scratch for another epoch, which is unrelated to the previous ones.
    private mutating func recordEpoch(_ epoch: String, of key: StateKey) {
        guard incarnations[key].map({ !$0.current.utf8.elementsEqual(epoch.utf8) }) ?? true else { return }
        incarnations[key] = LogIncarnations(epoch)
    }

    /// The minimal encoding of the same contents.
    var compacted: [UInt8] {
        var bytes = ActorLogEntry.bytes(of: [])
        let calls = calls.filter { values[$0] != nil }
        var (firstRetained, callBytes) = (calls.endIndex, 0)
        while firstRetained > calls.startIndex, calls.endIndex - firstRetained < Self.maximumCalls {
            callBytes += calls[firstRetained - 1].name.utf8.count + (values[calls[firstRetained - 1]]?.count ?? 0)
            guard callBytes <= Self.maximumCallBytes else { break }
            firstRetained -= 1
        }
        var removed = removedCalls
        for key in calls[..<firstRetained] { removed.addState(key) }
        for (connection, number) in removed.newest(Self.maximumConnections) {
            ActorLogEntry.appendRemovedCalls(connection, number, to: &bytes)
        }
        for (key, value) in values where key.namespace != IdempotencyNamespace.name {
            ActorLogEntry.append(.put(value, key), to: &bytes)
        }
        for key in calls[firstRetained...] {
            if let value = values[key] { ActorLogEntry.append(.put(value, key), to: &bytes) }
        }
        for (key, log) in logs {
            if let stored = self.log(key) {
                ActorLogEntry.append(.snapshot(stored.snapshot, key), to: &bytes)
                for entry in stored.entries { ActorLogEntry.append(.append(entry, key), to: &bytes) }
                if let incarnations = incarnations[key] { ActorLogEntry.append(incarnations, of: key, to: &bytes) }
            }
            for part in log.futureParts {
                ActorLogEntry.append(
                    StateWrite(key, .snapshotPart(part.bytes, index: part.index, number: part.number)), to: &bytes)
            }
        }
        // After all required items, so that they never make a log too large to be compacted.
        for (key, log) in logs where bytes.count + log.earlierEntryBytes < Self.maximumWithEarlierEntries {
            for entry in log.earlierEntries { ActorLogEntry.append(earlierEntry: entry, of: key, to: &bytes) }
        }
        return bytes
    }
}

/// The removed calls of each connection: all up to a number. It is unknown whether one of them ran, so none runs again.
struct CompactedCalls {
    private var connections: [ByteText: (number: UInt64, lastIndex: Int)] = [:]
    private var count = 0

    var isEmpty: Bool { connections.isEmpty }

    mutating func addState(_ key: StateKey) {
        guard let (connection, number) = IdempotencyNamespace.call(key) else { return }
        addCall(connection, number)
    }

    mutating func addCall(_ connection: String, _ number: UInt64) {
        count += 1
        let known = connections[ByteText(connection)]?.number ?? 0
        connections[ByteText(connection)] = (max(number, known), count)
    }

    func contains(_ key: StateKey) -> Bool {
        guard !connections.isEmpty, let (connection, number) = IdempotencyNamespace.call(key) else { return false }
        return connections[ByteText(connection)].map { number <= $0.number } ?? false
    }

    /// Returns the latest connections, the last one last.
    func newest(_ count: Int) -> [(connection: String, number: UInt64)] {
        connections.sorted { $0.value.lastIndex < $1.value.lastIndex }.suffix(count).map {
            ($0.key.text, $0.value.number)
        }
    }
}

/// Reads of one actor's log.
extension EngineStore {
    func values(of actor: String, in namespace: String) async throws(StateStoreError) -> [String: [UInt8]] {
        try await contents(of: actor).values(in: namespace)
    }

    func calls(of actor: String) async throws(StateStoreError) -> IdempotencyIndex {
        try await contents(of: actor).earlierCalls
    }
}

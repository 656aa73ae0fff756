internal import TrebuchetActors

/// Writes of one actor that are done together, as an entry of its log at an engine: one byte of version, then for each its kind, its key
/// and what it has.
enum PartitionEntry {
    private static let version: UInt8 = 1

    private enum Kind: UInt8 {
        case put, delete, append, snapshotPart, snapshot, deleteLog
    }

    static func bytes(of writes: some Sequence<StateWrite>) -> [UInt8] {
        var bytes = [version]
        for write in writes { append(write, to: &bytes) }
        return bytes
    }

    static func append(_ write: StateWrite, to bytes: inout [UInt8]) {
        func begin(_ kind: Kind) {
            bytes.append(kind.rawValue)
            ByteParts.append(Array(write.key.namespace.utf8), to: &bytes)
            ByteParts.append(Array(write.key.name.utf8), to: &bytes)
        }
        switch write.operation {
        case .put(let value):
            begin(.put)
            ByteParts.append(value, to: &bytes)
        case .delete: begin(.delete)
        case .append(let entry):
            begin(.append)
            ByteParts.append(entry.number, to: &bytes)
            ByteParts.append(entry.base, to: &bytes)
            ByteParts.append(entry.bytes, to: &bytes)
        case .snapshotPart(let part, let index, let number):
            begin(.snapshotPart)
            ByteParts.append(UInt32(index), to: &bytes)
            ByteParts.append(number, to: &bytes)
            ByteParts.append(part, to: &bytes)
        case .snapshot(let snapshot):
            begin(.snapshot)
            ByteParts.append(Array(snapshot.epoch.utf8), to: &bytes)
            ByteParts.append(snapshot.number, to: &bytes)
            ByteParts.append(UInt32(snapshot.parts), to: &bytes)
            ByteParts.append(snapshot.bytes, to: &bytes)
        case .deleteLog: begin(.deleteLog)
        }
    }

    /// Nil for what no node writes.
    static func writes(_ entry: [UInt8], of partition: String) -> [StateWrite]? {
        var rest = entry[...]
        guard rest.popFirst() == version else { return nil }
        var writes: [StateWrite] = []
        while !rest.isEmpty {
            guard let write = next(&rest, partition) else { return nil }
            writes.append(write)
        }
        return writes
    }

    private static func next(_ rest: inout ArraySlice<UInt8>, _ partition: String) -> StateWrite? {
        guard let kind = rest.popFirst().flatMap({ Kind(rawValue: $0) }), let namespace = ByteParts.text(&rest),
            let name = ByteParts.text(&rest)
        else { return nil }
        let key = StateKey(namespace, name, partition: partition)
        switch kind {
        case .put: return ByteParts.bytes(&rest).map { .put($0, key) }
        case .delete: return .delete(key)
        case .append:
            guard let number = ByteParts.number(UInt64.self, &rest), let base = ByteParts.number(UInt64.self, &rest),
                let bytes = ByteParts.bytes(&rest)
            else { return nil }
            return .append(LogEntry(number: number, base: base, bytes: bytes), key)
        case .snapshotPart:
            guard let index = ByteParts.number(UInt32.self, &rest), let number = ByteParts.number(UInt64.self, &rest),
                let bytes = ByteParts.bytes(&rest)
            else { return nil }
            return StateWrite(key, .snapshotPart(bytes, index: Int(index), number: number))
        case .snapshot:
            guard let epoch = ByteParts.text(&rest), let number = ByteParts.number(UInt64.self, &rest),
                let parts = ByteParts.number(UInt32.self, &rest), let bytes = ByteParts.bytes(&rest)
            else { return nil }
            return .snapshot(LogSnapshot(epoch: epoch, number: number, parts: Int(parts), bytes: bytes), key)
        case .deleteLog: return StateWrite(key, .deleteLog)
        }
    }
}

/// What the entries of an actor's log make, one after the other.
struct PartitionContents {
    /// Answers of calls that are kept of one actor when its log is folded: the last ones.
    static let keptCalls = 1_000

    private(set) var values: [StateKey: [UInt8]] = [:]
    private(set) var logs: [StateKey: MemoryLog] = [:]
    /// Calls, the oldest first; one that was written twice stands where it was first.
    private var calls: [StateKey] = []

    /// - Throws: `conflict` for writes that do not follow.
    mutating func apply(_ writes: [StateWrite]) throws(StateStoreError) {
        for write in writes {
            switch write.operation {
            case .put(let value):
                let isNew = values.updateValue(value, forKey: write.key) == nil
                if isNew, write.key.namespace == CallNamespace.name { calls.append(write.key) }
            case .delete: values[write.key] = nil
            default:
                var log = logs.removeValue(forKey: write.key) ?? MemoryLog()
                defer { if !log.isEmpty { logs[write.key] = log } }
                try log.apply(write)
            }
        }
    }

    /// What makes the same, in as little as that takes.
    var folded: [UInt8] {
        var bytes = PartitionEntry.bytes(of: [])
        let calls = calls.filter { values[$0] != nil }.suffix(Self.keptCalls)
        for (key, value) in values where key.namespace != CallNamespace.name {
            PartitionEntry.append(.put(value, key), to: &bytes)
        }
        for key in calls { if let value = values[key] { PartitionEntry.append(.put(value, key), to: &bytes) } }
        for (key, log) in logs {
            if let stored = log.stored {
                PartitionEntry.append(.snapshot(stored.snapshot, key), to: &bytes)
                for entry in stored.entries { PartitionEntry.append(.append(entry, key), to: &bytes) }
            }
            for part in log.partsToCome {
                PartitionEntry.append(
                    StateWrite(key, .snapshotPart(part.bytes, index: part.index, number: part.number)), to: &bytes)
            }
        }
        return bytes
    }
}

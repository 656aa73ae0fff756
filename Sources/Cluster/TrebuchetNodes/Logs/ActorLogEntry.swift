internal import TrebuchetActors

/// The encoding of one atomic change of an actor's log as an entry in the coordination store: one version byte, then for each item
/// its kind, its key and its contents.
enum ActorLogEntry {
    enum Item {
        case write(StateWrite)
        /// From here on the actor's logs are in the incarnation with this epoch.
        case incarnation(String)
        /// The incarnations of a log before it was compacted.
        case incarnations(LogIncarnations, StateKey)
        /// The removed calls of a connection up to a number, from a compacted log.
        case removedCalls(connection: String, UInt64)
        /// A change before a log's snapshot, from a compacted log.
        case earlierEntry(LogEntry, StateKey)
    }

    private static let version: UInt8 = 1

    private enum Kind: UInt8 {
        case put, delete, append, snapshotPart, snapshot, deleteLog, incarnation, incarnations, removedCalls,
            earlierEntry
    }

    static func bytes(of writes: some Sequence<StateWrite>, incarnation: String? = nil) -> [UInt8] {
        var bytes = [version]
        if let incarnation {
            bytes.append(Kind.incarnation.rawValue)
            BinaryFields.append(Array(incarnation.utf8), to: &bytes)
        }
        for write in writes { append(write, to: &bytes) }
        return bytes
    }

    static func append(_ incarnations: LogIncarnations, of key: StateKey, to bytes: inout [UInt8]) {
        appendHeader(.incarnations, key, &bytes)
        BinaryFields.append(Array(incarnations.current.utf8), to: &bytes)
        BinaryFields.append(UInt32(incarnations.earlier.count), to: &bytes)
        for incarnation in incarnations.earlier {
            BinaryFields.append(Array(incarnation.epoch.utf8), to: &bytes)
            BinaryFields.append(incarnation.lastVersion, to: &bytes)
        }
    }

    static func append(earlierEntry entry: LogEntry, of key: StateKey, to bytes: inout [UInt8]) {
        appendHeader(.earlierEntry, key, &bytes)
        append(entry, to: &bytes)
    }

    private static func append(_ entry: LogEntry, to bytes: inout [UInt8]) {
        BinaryFields.append(entry.version, to: &bytes)
        BinaryFields.append(entry.baseVersion, to: &bytes)
        BinaryFields.append(entry.bytes, to: &bytes)
    }

    static func appendRemovedCalls(_ connection: String, _ number: UInt64, to bytes: inout [UInt8]) {
        bytes.append(Kind.removedCalls.rawValue)
        BinaryFields.append(Array(connection.utf8), to: &bytes)
        BinaryFields.append(number, to: &bytes)
    }

    private static func appendHeader(_ kind: Kind, _ key: StateKey, _ bytes: inout [UInt8]) {
        bytes.append(kind.rawValue)
        BinaryFields.append(Array(key.namespace.utf8), to: &bytes)
        BinaryFields.append(Array(key.name.utf8), to: &bytes)
    }

    static func append(_ write: StateWrite, to bytes: inout [UInt8]) {
        func begin(_ kind: Kind) { Self.appendHeader(kind, write.key, &bytes) }
        switch write.operation {
        case .put(let value):
            begin(.put)
            BinaryFields.append(value, to: &bytes)
        case .delete: begin(.delete)
        case .append(let entry):
            begin(.append)
            append(entry, to: &bytes)
        case .snapshotPart(let part, let index, let number):
            begin(.snapshotPart)
            BinaryFields.append(UInt32(index), to: &bytes)
            BinaryFields.append(number, to: &bytes)
            BinaryFields.append(part, to: &bytes)
        case .snapshot(let snapshot):
            begin(.snapshot)
            BinaryFields.append(Array(snapshot.epoch.utf8), to: &bytes)
            BinaryFields.append(snapshot.version, to: &bytes)
            BinaryFields.append(UInt32(snapshot.partCount), to: &bytes)
            BinaryFields.append(snapshot.bytes, to: &bytes)
            for entry in write.leading { append(earlierEntry: entry, of: write.key, to: &bytes) }
        case .deleteLog: begin(.deleteLog)
        }
    }

    /// Parses an entry; nil for bytes that no node writes.
    static func items(_ entry: [UInt8], of partition: String) -> [Item]? {
        var rest = entry[...]
        guard rest.popFirst() == version else { return nil }
        var items: [Item] = []
        while !rest.isEmpty {
            guard let item = next(&rest, partition) else { return nil }
            items.append(item)
        }
        return items
    }

    private static func next(_ rest: inout ArraySlice<UInt8>, _ partition: String) -> Item? {
        guard let kind = rest.popFirst().flatMap({ Kind(rawValue: $0) }) else { return nil }
        if kind == .incarnation { return BinaryFields.text(&rest).map { .incarnation($0) } }
        if kind == .removedCalls {
            guard let connection = BinaryFields.text(&rest), let number = BinaryFields.number(UInt64.self, &rest) else {
                return nil
            }
            return .removedCalls(connection: connection, number)
        }
        guard let namespace = BinaryFields.text(&rest), let name = BinaryFields.text(&rest) else { return nil }
        let key = StateKey(namespace, name, partition: partition)
        if kind == .incarnations { return parseIncarnations(&rest).map { .incarnations($0, key) } }
        if kind == .earlierEntry { return entry(&rest).map { .earlierEntry($0, key) } }
        return write(kind, key, &rest).map { .write($0) }
    }

    private static func parseIncarnations(_ rest: inout ArraySlice<UInt8>) -> LogIncarnations? {
        guard let current = BinaryFields.text(&rest), let count = BinaryFields.number(UInt32.self, &rest),
            count <= LogIncarnations.maximumEarlierIncarnations
        else { return nil }
        var earlier: [StreamIncarnation] = []
        for _ in 0..<count {
            guard let epoch = BinaryFields.text(&rest), let last = BinaryFields.number(UInt64.self, &rest) else {
                return nil
            }
            earlier.append(StreamIncarnation(epoch: epoch, lastVersion: last))
        }
        return LogIncarnations(current, after: earlier)
    }

    private static func entry(_ rest: inout ArraySlice<UInt8>) -> LogEntry? {
        guard let number = BinaryFields.number(UInt64.self, &rest), let base = BinaryFields.number(UInt64.self, &rest),
            let bytes = BinaryFields.bytes(&rest)
        else { return nil }
        return LogEntry(version: number, baseVersion: base, bytes: bytes)
    }

    private static func write(_ kind: Kind, _ key: StateKey, _ rest: inout ArraySlice<UInt8>) -> StateWrite? {
        switch kind {
        case .incarnation, .incarnations, .removedCalls, .earlierEntry: return nil
        case .put: return BinaryFields.bytes(&rest).map { .put($0, key) }
        case .delete: return .delete(key)
        case .append: return entry(&rest).map { .append($0, key) }
        case .snapshotPart:
            guard let index = BinaryFields.number(UInt32.self, &rest),
                let number = BinaryFields.number(UInt64.self, &rest),
                let bytes = BinaryFields.bytes(&rest)
            else { return nil }
            return StateWrite(key, .snapshotPart(bytes, index: Int(index), number: number))
        case .snapshot:
            guard let epoch = BinaryFields.text(&rest), let number = BinaryFields.number(UInt64.self, &rest),
                let parts = BinaryFields.number(UInt32.self, &rest), let bytes = BinaryFields.bytes(&rest)
            else { return nil }
            return .snapshot(LogSnapshot(epoch: epoch, version: number, partCount: Int(parts), bytes: bytes), key)
        case .deleteLog: return StateWrite(key, .deleteLog)
        }
    }
}

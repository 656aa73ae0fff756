internal import TrebuchetWire

/// The log of one persisted state: its position in the store, and the next writes.
///
/// It starts with a whole value, followed by changes. When these outweigh the value, a new snapshot replaces them. It is
/// encoded on another thread from a copy, and written in slices together with other writes.
///
/// Only on the reactor of its actor.
final class PersistedLog {
    /// The size of changes below which no snapshot is written, because it would cost more than it saves.
    private static let minimumEntryBytes = 64 << 10
    /// The maximum ratio of changes to value. The cost of a write is the size of the value, and the cost of a read is the size
    /// of the changes.
    private static let entryRatio = 2
    /// The size of the slices of a snapshot.
    static let sliceBytes = 256 << 10

    let key: StateKey
    /// Weak, because it belongs to the actor, which retains the states.
    private(set) weak var source: StateSource?
    /// Set if the store has a log that the next change follows.
    private var isBegun = false
    /// Set if the store has a value of an older form under the key, which the log replaces.
    private var hasValue: Bool
    /// Set if the last returned writes delete that value.
    private var deletesValue = false
    private var snapshotBytes = 0
    private var entryBytes = 0
    /// The snapshot that will replace the entries.
    private var slices: SnapshotSlices?
    /// Set if a copied value was too large.
    private var isTooLarge = false

    init(_ key: StateKey, _ source: StateSource, hasValue: Bool = false) {
        self.key = key
        self.source = source
        self.hasValue = hasValue
    }

    /// Continues the stored log.
    func resume(_ stored: StoredLog) {
        isBegun = true
        snapshotBytes = stored.snapshot.bytes.count
        entryBytes = stored.entries.reduce(0) { $0 + $1.bytes.count }
    }

    /// Returns the writes for the changes since the last call; empty if there are none. They count as written until
    /// `scheduleRewrite`.
    ///
    /// - Parameters:
    ///   - stateSize: the maximum size of the whole value in bytes.
    ///   - name: the name of the actor.
    func changes(stateSize: Int, of name: String) throws -> [StateWrite] {
        guard let source else { throw TrebuchetError(.actorNotFound, "actor '\(name)' no longer exists") }
        guard let captured = try source.capture(whole: !isBegun || isTooLarge) else { return [] }
        switch captured {
        case .changes(let entries):
            entryBytes += entries.reduce(0) { $0 + $1.bytes.count }
            return entries.map { .append($0, key) }
        case .snapshot(let json, let version):
            let bytes = StoredState(version: source.storedVersion, json: json).bytes
            try check(bytes.count, stateSize)
            isTooLarge = false
            slices = nil
            let snapshot = LogSnapshot(epoch: source.epoch, version: version, bytes: bytes)
            return startLog(with: snapshot, behind: source.leadingEntries, bytes.count)
        }
    }

    private func check(_ count: Int, _ limit: Int) throws {
        guard count > limit else { return }
        throw TrebuchetError(.internal, "the state has \(count) bytes; the limit is \(limit)")
    }

    private func startLog(with snapshot: LogSnapshot, behind entries: [LogEntry], _ count: Int) -> [StateWrite] {
        deletesValue = hasValue
        isBegun = true
        snapshotBytes = count
        entryBytes = 0
        var write = StateWrite.snapshot(snapshot, key)
        write.leading = entries
        return [write] + (hasValue ? [.delete(key)] : [])
    }

    /// Confirms that the returned writes are stored.
    func didWrite() {
        if deletesValue { (hasValue, deletesValue) = (false, false) }
    }

    /// Schedules the whole value after a failed write or an unknown outcome.
    func scheduleRewrite() {
        deletesValue = false
        isBegun = false
        slices = nil
        source?.discardCapture()
    }

    // MARK: A new snapshot

    /// Returns a copy of the current value for a snapshot, if the changes since the last one outweigh it.
    func copyIfSnapshotDue() -> (copy: StateCopy, slices: SnapshotSlices)? {
        guard isBegun, slices == nil, entryBytes > max(Self.minimumEntryBytes, Self.entryRatio * snapshotBytes),
            let source,
            let copy = source.copy()
        else { return nil }
        let created = SnapshotSlices(number: source.version, replacing: entryBytes)
        slices = created
        return (copy, created)
    }

    /// Stores the copied value as JSON, nil for none. Returns false if the snapshot is no longer needed.
    func storeSnapshot(_ json: [UInt8]?, for slices: SnapshotSlices, stateSize: Int) -> Bool {
        guard self.slices === slices, let source else { return false }
        let bytes = json.map { StoredState(version: source.storedVersion, json: $0).bytes }
        guard let bytes, bytes.count <= stateSize else {
            // The next change is written as a whole value, and reports the error.
            isTooLarge = true
            self.slices = nil
            return false
        }
        slices.setBytes(bytes)
        return true
    }

    /// Returns the next slice of a snapshot that is ready; nil if there is none.
    func nextSlice() -> StateWrite? {
        guard let source, let slices, let slice = slices.next(Self.sliceBytes) else { return nil }
        switch slice {
        case .part(let bytes, let index):
            return StateWrite(key, .snapshotPart(bytes, index: index, number: slices.number))
        case .last(let bytes, let parts):
            self.slices = nil
            snapshotBytes = slices.byteCount
            entryBytes -= slices.replacedBytes
            let snapshot = LogSnapshot(epoch: source.epoch, version: slices.number, partCount: parts, bytes: bytes)
            return .snapshot(snapshot, key)
        }
    }

    /// True if slices wait to be written.
    var hasSlices: Bool { slices?.isReady ?? false }
}

/// A snapshot that is written in slices. Only on the reactor of its actor.
final class SnapshotSlices {
    /// A slice: a part, or the rest with the number of parts before it.
    enum Slice {
        case part([UInt8], index: Int)
        case last([UInt8], parts: Int)
    }

    /// The number of its version.
    let number: UInt64
    /// The size of the changes that it replaces in bytes.
    let replacedBytes: Int
    private var bytes: [UInt8]?
    private var parts = 0

    init(number: UInt64, replacing replacedBytes: Int) {
        self.number = number
        self.replacedBytes = replacedBytes
    }

    var isReady: Bool { bytes != nil }
    var byteCount: Int { bytes?.count ?? 0 }

    func setBytes(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Returns the next slice; nil until the value is encoded.
    func next(_ size: Int) -> Slice? {
        guard let bytes else { return nil }
        let start = parts * size
        guard bytes.count - start > size else { return .last(Array(bytes[start...]), parts: parts) }
        defer { parts += 1 }
        return .part(Array(bytes[start..<start + size]), index: parts)
    }
}

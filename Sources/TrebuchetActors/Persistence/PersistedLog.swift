internal import TrebuchetWire

/// The log of one persisted state: where it stands in the store, and what is written to it next.
///
/// It begins with a whole value and goes on with changes. When these outweigh the value a new one is written, which lets
/// them go: encoded on another thread from a copy, and in slices beside other writes.
///
/// `@unchecked Sendable`: touched on the reactor of its actor alone.
final class PersistedLog: @unchecked Sendable {
    /// Changes that are never too many, in bytes: a value that is written anew for less costs more than it saves.
    private static let leastOutweighing = 64 << 10
    /// So many times the value is what its changes may have: writing it costs what it has, reading them costs what they have.
    private static let outweighing = 2
    /// Of a snapshot that is written in slices.
    static let sliceBytes = 256 << 10

    let key: StateKey
    /// Belongs to the actor, whose reference to the states is strong.
    private(set) weak var source: StateSource?
    /// Whether the store has a log that the next change follows.
    private var isBegun = false
    /// Whether the store has a value of an older form under the key, which the log takes the place of.
    private var hasValue: Bool
    /// Whether that is to go with what was given last.
    private var deletesValue = false
    private var snapshotBytes = 0
    private var entryBytes = 0
    /// What is to take the place of the entries.
    private var slices: SnapshotSlices?
    /// A value that was found to be too large when it was copied.
    private var isTooLarge = false

    init(_ key: StateKey, _ source: StateSource, hasValue: Bool = false) {
        self.key = key
        self.source = source
        self.hasValue = hasValue
    }

    /// The source goes on with the log that the store has.
    func resume(_ stored: StoredLog) {
        isBegun = true
        snapshotBytes = stored.snapshot.bytes.count
        entryBytes = stored.entries.reduce(0) { $0 + $1.bytes.count }
    }

    /// What has changed since the last call; empty when that is nothing. It counts as written, until `writeAgain`.
    ///
    /// - Parameters:
    ///   - stateSize: bytes that the whole value may have.
    ///   - name: of the actor.
    func changes(stateSize: Int, of name: String) throws -> [StateWrite] {
        guard let source else { throw TrebuchetError(.actorNotFound, "actor '\(name)' is gone") }
        guard let captured = try source.capture(whole: !isBegun || isTooLarge) else { return [] }
        switch captured {
        case .changes(let entries):
            entryBytes += entries.reduce(0) { $0 + $1.bytes.count }
            return entries.map { .append($0, key) }
        case .whole(let json, let version):
            let bytes = StoredState(version: source.storedVersion, json: json).bytes
            try check(bytes.count, stateSize)
            isTooLarge = false
            slices = nil
            let snapshot = LogSnapshot(epoch: source.epoch, number: version, bytes: bytes)
            return begin(with: snapshot, behind: source.leadingEntries, bytes.count)
        }
    }

    private func check(_ count: Int, _ limit: Int) throws {
        guard count > limit else { return }
        throw TrebuchetError(.internal, "a state of \(count) bytes is larger than the \(limit) allowed")
    }

    private func begin(with snapshot: LogSnapshot, behind entries: [LogEntry], _ count: Int) -> [StateWrite] {
        deletesValue = hasValue
        isBegun = true
        snapshotBytes = count
        entryBytes = 0
        var write = StateWrite.snapshot(snapshot, key)
        write.leading = entries
        return [write] + (hasValue ? [.delete(key)] : [])
    }

    /// What was given is kept.
    func didWrite() {
        if deletesValue { (hasValue, deletesValue) = (false, false) }
    }

    /// What was given was not kept, or nobody knows: the whole value is written next.
    func writeAgain() {
        deletesValue = false
        isBegun = false
        slices = nil
        source?.captureAgain()
    }

    // MARK: A new snapshot

    /// What writes the value of now, when the changes since the last snapshot outweigh it.
    func copyIfOutweighed() -> (copy: StateCopy, slices: SnapshotSlices)? {
        guard isBegun, slices == nil, entryBytes > max(Self.leastOutweighing, Self.outweighing * snapshotBytes),
            let source,
            let copy = source.copy()
        else { return nil }
        let made = SnapshotSlices(number: source.version, behind: entryBytes)
        slices = made
        return (copy, made)
    }

    /// Takes the value that was copied, in JSON, nil for none; false when it is not wanted any more.
    func take(_ json: [UInt8]?, for slices: SnapshotSlices, stateSize: Int) -> Bool {
        guard self.slices === slices, let source else { return false }
        let bytes = json.map { StoredState(version: source.storedVersion, json: $0).bytes }
        guard let bytes, bytes.count <= stateSize else {
            // The next change is written as a whole, and says what is wrong.
            isTooLarge = true
            self.slices = nil
            return false
        }
        slices.take(bytes)
        return true
    }

    /// The next slice of a snapshot that is ready; nil when there is none.
    func nextSlice() -> StateWrite? {
        guard let source, let slices, let slice = slices.next(Self.sliceBytes) else { return nil }
        switch slice {
        case .part(let bytes, let index):
            return StateWrite(key, .snapshotPart(bytes, index: index, number: slices.number))
        case .last(let bytes, let parts):
            self.slices = nil
            snapshotBytes = slices.byteCount
            entryBytes -= slices.outweighing
            let snapshot = LogSnapshot(epoch: source.epoch, number: slices.number, parts: parts, bytes: bytes)
            return .snapshot(snapshot, key)
        }
    }

    /// Whether slices wait to be written.
    var hasSlices: Bool { slices?.isReady ?? false }
}

/// A snapshot that is written slice by slice.
///
/// `@unchecked Sendable`: touched on the reactor of its actor alone.
final class SnapshotSlices: @unchecked Sendable {
    enum Slice {
        case part([UInt8], index: Int)
        case last([UInt8], parts: Int)
    }

    /// Of the version that it is.
    let number: UInt64
    /// Bytes of changes that it takes the place of.
    let outweighing: Int
    private var bytes: [UInt8]?
    private var parts = 0

    init(number: UInt64, behind outweighing: Int) {
        self.number = number
        self.outweighing = outweighing
    }

    var isReady: Bool { bytes != nil }
    var byteCount: Int { bytes?.count ?? 0 }

    func take(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The slice behind the one before; nil while there is none.
    func next(_ size: Int) -> Slice? {
        guard let bytes else { return nil }
        let start = parts * size
        guard bytes.count - start > size else { return .last(Array(bytes[start...]), parts: parts) }
        defer { parts += 1 }
        return .part(Array(bytes[start..<start + size]), index: parts)
    }
}

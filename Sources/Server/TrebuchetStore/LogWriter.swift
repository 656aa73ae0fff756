internal import Trebuchet

/// Writes logs, on the writer's thread and in its transactions.
final class LogWriter {
    /// The state of a log, including the writes of the current transaction.
    struct State {
        /// Nil when there is no log.
        var row: LogRow?
        /// True if the log's incarnation of this generation is still to be written, with the first change.
        var startsIncarnation = false
        /// The number of the newest entry, or of the snapshot.
        var last: UInt64 = 0
        var draft: UnfinishedSnapshot?
    }

    /// The maximum number of logs cached beyond a transaction.
    private static let maximumKnownEntries = 50_000

    let garbage: LogGarbageCollector
    private let pieces: LogStatements
    private let generations: StoreGenerations
    private var known: [StateKey: State] = [:]
    /// The states of logs before the current request.
    private var before: [StateKey: State] = [:]
    private var garbageBefore = 0
    private var lastID: UInt64

    init(
        _ connection: SQLiteConnection, _ remains: OrphanedLogRows, _ generations: StoreGenerations
    ) throws(StateStoreError) {
        self.generations = generations
        pieces = try LogStatements(connection)
        garbage = try LogGarbageCollector(connection, waiting: remains.garbage)
        lastID = remains.lastID
    }

    // MARK: Requests and transactions

    func beginRequest() {
        before = [:]
        garbageBefore = garbage.count
    }

    /// Reverts the writes of a failed request.
    func undoRequest() {
        for (key, state) in before { known[key] = state }
        garbage.rollBack(to: garbageBefore)
    }

    /// Ends the transaction.
    func endTransaction(isCommitted: Bool) {
        garbage.endTransaction(isCommitted: isCommitted)
        before = [:]
        if !isCommitted || known.count > Self.maximumKnownEntries { known = [:] }
    }

    // MARK: Writes

    /// Executes a write. Writes nothing if it throws `conflict`.
    func run(_ write: StateWrite) throws(StateStoreError) {
        var state = try state(of: write.key)
        if before[write.key] == nil { before[write.key] = state }
        switch write.operation {
        case .put, .delete: return
        case .append(let entry): try append(entry, to: &state, write.key)
        case .snapshotPart(let bytes, let index, let number):
            try appendPart(bytes, index: index, number: number, to: &state, write.key)
        case .snapshot(let snapshot): try replaceSnapshot(snapshot, for: &state, write.key)
        case .deleteLog: try delete(&state, write.key)
        }
        known[write.key] = state
    }

    private func state(of key: StateKey) throws(StateStoreError) -> State {
        if let state = known[key] { return state }
        var state = State(row: try pieces.row(of: key), draft: try pieces.draft(of: key))
        if let row = state.row {
            state.last = max(row.number, try pieces.lastEntry(of: row.entries) ?? 0)
            state.row = generations.resume(row, at: state.last)
            state.startsIncarnation = state.row != row
        }
        known[key] = state
        return state
    }

    private func append(_ entry: LogEntry, to state: inout State, _ key: StateKey) throws(StateStoreError) {
        guard let row = state.row else { throw .conflict(key, nil, entry) }
        guard state.last == entry.baseVersion, entry.version > entry.baseVersion else {
            throw .conflict(key, state.last, entry)
        }
        if state.startsIncarnation {
            try pieces.put(row, key)
            state.startsIncarnation = false
        }
        try pieces.insert(entry, into: row.entries)
        state.last = entry.version
    }

    private func appendPart(
        _ bytes: [UInt8], index: Int, number: UInt64, to state: inout State, _ key: StateKey
    ) throws(StateStoreError) {
        // A negative index belongs to no snapshot.
        guard index >= 0 else { return }
        if let draft = state.draft, draft.number != number {
            garbage.addItem(.parts(of: draft.snapshot))
            state.draft = nil
        }
        let draft = state.draft ?? UnfinishedSnapshot(number: number, snapshot: newID())
        if state.draft == nil { try pieces.put(draft, key) }
        try bytes.withBytes { bytes throws(StateStoreError) in
            try pieces.put(bytes, part: index, of: draft.snapshot)
        }
        state.draft = draft
    }

    private func replaceSnapshot(_ snapshot: LogSnapshot, for state: inout State, _ key: StateKey)
        throws(StateStoreError)
    {
        let size = try sizeOfParts(snapshot, state, key)
        let keepsEntries = try hasLater(snapshot, state, key)
        // No write happened before this line.
        let id: UInt64
        if snapshot.partCount > 0, let draft = state.draft {
            id = draft.snapshot
            try pieces.deleteParts(of: id, from: snapshot.partCount)
        } else {
            id = newID()
            if let draft = state.draft { garbage.addItem(.parts(of: draft.snapshot)) }
        }
        if state.draft != nil { try pieces.deleteDraft(key) }
        state.draft = nil
        let parts = try pieces.put(snapshot.bytes, behind: snapshot.partCount, of: id)
        if let old = state.row {
            garbage.addItem(.parts(of: old.snapshot))
            if state.last > old.number {
                garbage.addItem(.entries(of: old.entries, through: keepsEntries ? snapshot.version : UInt64(Int64.max)))
            }
        }
        let entries = keepsEntries ? state.row?.entries : nil
        let incarnations = isSame(snapshot, state) ? state.row?.incarnations : nil
        let row = LogRow(
            incarnations ?? LogIncarnations(snapshot.epoch), in: generations.current, number: snapshot.version,
            entries: entries ?? newID(), snapshot: id, parts: snapshot.partCount + parts,
            size: size + snapshot.bytes.count)
        try pieces.put(row, key)
        state.startsIncarnation = false
        if !keepsEntries { state.last = snapshot.version }
        state.row = row
    }

    /// Returns the size in bytes of the parts that were written before.
    private func sizeOfParts(
        _ snapshot: LogSnapshot, _ state: State, _ key: StateKey
    ) throws(StateStoreError) -> Int {
        guard snapshot.partCount > 0 else { return 0 }
        guard let draft = state.draft, draft.number == snapshot.version else {
            throw .missingPart(0, of: snapshot, key)
        }
        let (count, size) = try pieces.sizeOfParts(draft.snapshot, most: snapshot.partCount)
        guard count == snapshot.partCount else { throw .missingPart(count, of: snapshot, key) }
        return size
    }

    /// Returns true if entries remain after the snapshot.
    private func hasLater(_ snapshot: LogSnapshot, _ state: State, _ key: StateKey) throws(StateStoreError) -> Bool {
        guard let row = state.row, isSame(snapshot, state), state.last > row.number,
            state.last > snapshot.version,
            let first = try pieces.firstEntry(of: row.entries, after: max(row.number, snapshot.version))
        else { return false }
        guard first.baseVersion == snapshot.version else { throw .conflict(key, first.baseVersion, first) }
        return true
    }

    /// Returns true if the snapshot belongs to the log's current incarnation.
    private func isSame(_ snapshot: LogSnapshot, _ state: State) -> Bool {
        state.row?.incarnations.current.utf8.elementsEqual(snapshot.epoch.utf8) ?? false
    }

    private func delete(_ state: inout State, _ key: StateKey) throws(StateStoreError) {
        if let draft = state.draft {
            garbage.addItem(.parts(of: draft.snapshot))
            try pieces.deleteDraft(key)
        }
        if let row = state.row {
            garbage.addItem(.parts(of: row.snapshot))
            garbage.addItem(.entries(of: row.entries, through: UInt64(Int64.max)))
            try pieces.deleteRow(key)
        }
        state = State()
    }

    private func newID() -> UInt64 {
        lastID += 1
        return lastID
    }
}

/// The state of logs found at the opening of a store.
struct OrphanedLogRows {
    /// The rows that no log refers to.
    var garbage: [LogGarbageCollector.Item] = []
    /// The largest number of parts and entries.
    var lastID: UInt64 = 0
}

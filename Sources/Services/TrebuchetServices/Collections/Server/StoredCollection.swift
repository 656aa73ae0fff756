internal import Bytes
internal import Synchronization
internal import Trebuchet
internal import TrebuchetActors
internal import TrebuchetWire

/// The persisted form of a collection: a log with its documents and recorded mutations, and a value with the number of
/// documents.
final class StoredCollection: Sendable {
    /// The size of a snapshot slice, and of an entry with more than one document, in bytes.
    static let sliceBytes = 256 << 10
    /// The number of lines that are read in one turn.
    private static let linesAtOnce = 500
    /// The number of entries that are read in one turn; most have few lines.
    private static let entriesAtOnce = 100

    /// The key of the log.
    private static let log = "log"

    private let store: any StateStore
    private let name: String
    /// Set where one of several nodes owns the collection.
    private let ownership: Ownership?
    private let location = Mutex(CollectionLogLocation())
    private let isOver = Mutex(false)

    /// The ownership at the time of loading; the collection only writes under it.
    struct Ownership: Sendable {
        let actor: String
        let fence: UInt64
    }

    init(_ name: String, in store: any StateStore, _ ownership: Ownership? = nil) {
        self.store = store
        self.name = name
        self.ownership = ownership
    }

    /// Ends all writes, because another node owns the collection.
    func close() { isOver.withLock { $0 = true } }
    var hasEnded: Bool { isOver.withLock { $0 } }

    static func namespace(_ collection: String) -> String { "collection.\(collection)" }

    private var namespace: String { Self.namespace(name) }
    private var key: StateKey { Self.logKey(name, partition: ownership?.actor) }

    static func logKey(_ collection: String, partition: String?) -> StateKey {
        StateKey(namespace(collection), log, partition: partition)
    }
    private var countKey: StateKey {
        let key = DocumentCount.key(namespace)
        return StateKey(key.namespace, key.name, partition: ownership?.actor)
    }

    /// True when the next batch continues the log in the store.
    var isBegun: Bool { location.withLock { $0.isBegun } }

    /// Returns the number of documents in a namespace of a store, and the bytes that it uses for them.
    static func usage(of namespace: String, in store: any CatalogedStore) async throws(StateStoreError) -> StoreUsage {
        guard let count = DocumentCount(try await store.get(DocumentCount.key(namespace))) else {
            return try await store.usage(of: namespace, prefix: LegacyStoredCollection.documents)
        }
        let usage = try await store.usage(of: namespace, prefix: log)
        return StoreUsage(entries: count.documents, bytes: usage.bytes)
    }

    // MARK: Loading

    /// - Parameter now: milliseconds since 1970; documents that have expired by then are omitted.
    /// - Throws: `CollectionError.storeFailed`, or a `TrebuchetError` when the collection moves to another node or its lease is
    ///   being renewed.
    func load(_ limits: CollectionLimits, at server: TrebuchetServer, now: Int) async throws -> DocumentTable {
        do {
            try server.claimStore(store, for: "collections")
            return DocumentTable(
                name, limits: limits, try await contents(server), at: now, isEntry: ownership != nil)
        } catch let error as StateStoreError {
            let text = "collection '\(name)' cannot be loaded: \(error)"
            guard error.isOfOwnership else { throw CollectionError.storeFailed(text) }
            throw error.forCallers(text, isClustered: ownership != nil)
        } catch {
            // The error may contain stored data, which the caller may not be authorized to see.
            let reason = server.disclose(error, of: "loading collection '\(name)'")
            throw CollectionError.storeFailed("collection '\(name)' cannot be loaded: \(reason)")
        }
    }

    private func contents(_ server: TrebuchetServer) async throws -> CollectionContents {
        let older = LegacyStoredCollection(namespace, in: store)
        let count = DocumentCount(try await store.get(countKey))
        guard let log = try await store.readLog(key) else {
            guard count == nil else {
                throw StateStoreError(.damaged, "the log of '\(key)' is missing")
            }
            // The coordination store never had older forms.
            guard ownership == nil else { return CollectionContents() }
            let contents = try await older.contents()
            guard !contents.isNew else { return contents }
            do {
                try await convertToLog(contents)
                await older.remove()
            } catch {
                server.log(
                    "collection '\(name)' could not be migrated and keeps its earlier stored form until the next write: \(error)"
                )
            }
            return contents
        }
        let contents = try await read(log, documents: count?.documents)
        if ownership == nil { await older.remove() }
        return contents
    }

    // MARK: Reading a log

    private func read(_ log: StoredLog, documents: Int?) async throws -> CollectionContents {
        var contents = CollectionContents(expecting: documents)
        var place = CollectionLogLocation(
            epoch: log.snapshot.epoch, number: log.lastVersion, isBegun: true, documents: documents,
            snapshotBytes: log.snapshot.bytes.count)
        place.clientBytes = try await Self.read(log.snapshot.bytes, log.snapshot.version, of: key, into: &contents)
        for (index, entry) in log.entries.enumerated() {
            try await Self.read(entry.bytes, entry.version, of: key, into: &contents)
            place.entryBytes += entry.bytes.count
            if index % Self.entriesAtOnce == Self.entriesAtOnce - 1 { await Task.yield() }
        }
        let found = place
        self.location.withLock { $0 = found }
        return contents
    }

    /// - Returns: the bytes of lines about clients.
    @discardableResult
    static func read(
        _ bytes: [UInt8], _ number: UInt64, of key: StateKey, into contents: inout CollectionContents
    ) async throws -> Int {
        var reader = CollectionLogLineReader(bytes)
        do {
            while try reader.read(linesAtOnce, into: &contents) { await Task.yield() }
        } catch {
            throw UnreadableStoredEntry(key: key, reason: "\(number): \(error)")
        }
        return reader.clientBytes
    }

    /// Converts the older form, one value for each document, to a log.
    private func convertToLog(_ contents: CollectionContents) async throws {
        var place = CollectionLogLocation()
        try await put(try await startLog(contents, &place))
        let begun = place
        self.location.withLock { $0 = begun }
    }

    // MARK: Writing

    /// Proves that the store has acknowledged a batch; only `write` creates one.
    struct Acknowledgement: Sendable {
        fileprivate init() {}
    }

    /// Returns when a batch is in the store.
    ///
    /// - Parameter contents: the contents of the store without the batch. Nil is allowed when `isBegun`.
    @discardableResult
    func write(
        _ batch: DocumentTable.Batch, over contents: CollectionContents?
    ) async throws(CollectionError) -> Acknowledgement {
        let before = location.withLock { $0 }
        var after = before
        do {
            var writes = before.isBegun ? [] : try await startLog(contents, &after)
            for bytes in Self.entries(batch) {
                writes.append(
                    .append(LogEntry(version: after.number + 1, baseVersion: after.number, bytes: bytes), key))
                after.number += 1
                after.entryBytes += bytes.count
            }
            if after.documents != batch.documentCount { writes.append(count(batch.documentCount, &after)) }
            try await put(writes)
        } catch {
            let code = (error as? StateStoreError)?.code
            if hasEnded, code == .conflict || code == .closed { throw .closed }
            // The store has other data than it has acknowledged: the next batch starts a new log with the acknowledged
            // contents.
            if code == .conflict { location.withLock { $0.isBegun = false } }
            throw code?.hasUnknownOutcome == true ? .unknownOutcome("\(error)") : .storeFailed("\(error)")
        }
        let added = after.entryBytes - before.entryBytes
        location.withLock { place in
            guard before.isBegun else { return place = after }
            // A snapshot may have been written meanwhile.
            (place.number, place.documents) = (after.number, after.documents)
            place.entryBytes += added
        }
        return Acknowledgement()
    }

    private func put(_ writes: [StateWrite]) async throws(StateStoreError) {
        guard let ownership else { return try await store.write(writes) }
        guard !hasEnded else { throw StateStoreError(.closed, "another node owns the collection") }
        do throws(StateStoreError) {
            try await store.write(
                writes.map { write in
                    var write = write
                    write.ownership = ownership.fence
                    return write
                })
        } catch {
            if error.code == .conflict { close() }
            throw error
        }
    }

    /// Returns the changes of a batch, in entries of about a slice.
    private static func entries(_ batch: DocumentTable.Batch) -> [[UInt8]] {
        var entries: [[UInt8]] = []
        var lines = ByteBuffer()
        CollectionLogFormat.write(revision: batch.revision, time: batch.time, to: &lines)
        for (id, change) in batch.documents {
            if let document = change.document {
                CollectionLogFormat.write(document, to: &lines)
            } else {
                CollectionLogFormat.write(deleted: id, to: &lines)
            }
            if lines.count >= sliceBytes { cut(&lines, behind: batch, into: &entries) }
        }
        for (client, change) in batch.clients {
            CollectionLogFormat.write(change, of: client, to: &lines)
            if lines.count >= sliceBytes { cut(&lines, behind: batch, into: &entries) }
        }
        return entries + [Array(lines.bytes)]
    }

    /// Ends an entry, and begins the next one.
    private static func cut(
        _ lines: inout ByteBuffer, behind batch: DocumentTable.Batch, into entries: inout [[UInt8]]
    ) {
        entries.append(Array(lines.bytes))
        lines.removeAll()
        CollectionLogFormat.write(revision: batch.revision, time: batch.time, to: &lines)
    }

    private func count(_ documents: Int, _ place: inout CollectionLogLocation) -> StateWrite {
        place.documents = documents
        return .put(DocumentCount(documents: documents).bytes, countKey)
    }

    // MARK: Snapshots

    /// A snapshot to write.
    struct Snapshot: Sendable {
        fileprivate let contents: CollectionContents
        fileprivate let location: CollectionLogLocation
    }

    /// Returns a snapshot when it would have less than half of the log's bytes, else nil. Called between two writes.
    ///
    /// - Parameters:
    ///   - documentBytes: the bytes of all documents.
    ///   - contents: the contents of the store.
    func snapshotIfDue(
        by documentBytes: Int, _ contents: () -> CollectionContents
    ) -> Snapshot? {
        let place = location.withLock { $0 }
        guard place.isBegun, place.isSnapshotDue(by: documentBytes) else { return nil }
        return Snapshot(contents: contents(), location: place)
    }

    /// Writes a snapshot, concurrently with batches.
    ///
    /// - Parameter isWanted: called before each slice; false ends the write.
    func write(_ snapshot: Snapshot, while isWanted: @Sendable () -> Bool) async throws {
        let before = snapshot.location
        var after = before
        do {
            let end = try await slices(snapshot.contents, &after, endsInSlice: true, while: isWanted)
            guard isWanted() else { throw CancellationError() }
            try await put([end])
        } catch {
            location.withLock {
                $0.maximumBytes = before.byteCount + max(CollectionLogLocation.least, before.byteCount / 2)
            }
            throw error
        }
        location.withLock { place in
            guard place.epoch == before.epoch else { return }
            place.entryBytes -= before.entryBytes
            (place.snapshotBytes, place.clientBytes) = (after.snapshotBytes, after.clientBytes)
            place.maximumBytes = 0
        }
    }

    /// Begins a log with the contents; returns the writes that make it valid, to be executed atomically.
    private func startLog(_ contents: CollectionContents?, _ place: inout CollectionLogLocation) async throws
        -> [StateWrite]
    {
        guard let contents else { throw StateStoreError(.failed, "the log of '\(key)' does not exist") }
        place = .new()
        let end = try await slices(contents, &place, endsInSlice: !contents.isEmpty)
        return [end, count(contents.documents.count, &place)]
    }

    /// Writes a snapshot slice by slice; returns the write that makes it valid.
    ///
    /// - Parameter endsInSlice: true when the end is a slice too. Then this snapshot never replaces one that another server,
    ///   which has taken the store over, writes meanwhile: that one removes the slices.
    private func slices(
        _ contents: CollectionContents, _ place: inout CollectionLogLocation, endsInSlice: Bool,
        while isWanted: @Sendable () -> Bool = { true }
    ) async throws -> StateWrite {
        var lines = SnapshotLines(contents)
        var parts = 0
        while true {
            var slice = lines.next(Self.sliceBytes)
            if endsInSlice || !lines.isAtEnd {
                guard isWanted() else { throw CancellationError() }
                try await put([StateWrite(key, .snapshotPart(slice, index: parts, number: place.number))])
                parts += 1
                slice = []
            }
            guard lines.isAtEnd else { continue }
            (place.snapshotBytes, place.clientBytes) = (lines.byteCount, lines.clientBytes)
            return .snapshot(
                LogSnapshot(epoch: place.epoch, version: place.number, partCount: parts, bytes: slice), key)
        }
    }
}

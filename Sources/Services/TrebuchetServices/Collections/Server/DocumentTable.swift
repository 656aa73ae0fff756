internal import Platform
internal import Trebuchet

/// The documents of a collection and the recorded mutations of its clients, with the changes that are not in the store yet. Pure.
///
/// Commands see unwritten changes; readers only see written ones. Mutations are executed in the order of their arrival here: of two writes
/// to one field the later one wins, whatever the client's time was.
struct DocumentTable: Sendable {
    typealias ChangeCheck = (DocumentChangeRequest) throws(CollectionError) -> Void

    /// The maximum number of expired documents that a batch deletes; the second one where a batch is one entry in the coordination store.
    private static let deletedAtOnce = 2_000
    private static let deletedTogether = 500
    /// The maximum size of one mutation's documents in bytes, where a batch is one entry in the coordination store.
    static let maximumBatchCount = 512 << 10
    /// The size in bytes at which such a batch takes no more mutations, and the overhead of each.
    private static let fullBatch = 256 << 10
    private static let mutationOverhead = 1 << 10

    /// The documents in the store, without expired ones.
    private(set) var documents: DocumentMap
    private var unwritten: [DocumentID: Unwritten] = [:]
    private var expiries: ExpiryQueue
    /// Expired documents that must be removed from results.
    private var expired: [DocumentChange] = []
    /// Expired documents that must be deleted from the store.
    private var undeleted: [DocumentID] = []
    /// Expired documents in the current batch, and those of a failed batch, which wait for the next write.
    private var deleting: [DocumentID] = []
    private var postponed: [DocumentID] = []
    private var clients: ClientMutationLog
    /// The number of the last write.
    private(set) var revision: Int
    /// The time of the last write, in milliseconds since 1970; see `CollectionClock.advance`.
    private(set) var time: Int
    let name: String
    /// The current limits; documents above a lowered limit stay.
    var limits: CollectionLimits
    /// The key for identifiers of hosts.
    let secret: UInt64
    /// The quotas, including unwritten changes.
    private(set) var shares = DocumentQuotas()
    /// True when a batch is one entry in the coordination store, which has a maximum size.
    let isEntry: Bool
    /// The approximate size of the next batch in bytes.
    private var nextBytes = 0

    /// - Parameters:
    ///   - name: the name of the collection.
    ///   - contents: the contents of the store.
    ///   - now: milliseconds since 1970. Documents that have expired by then are removed.
    ///   - isEntry: true when a batch is one entry in the coordination store.
    init(
        _ name: String = "", limits: CollectionLimits, _ contents: CollectionContents = CollectionContents(),
        at now: Int = 0, isEntry: Bool = false
    ) {
        self.isEntry = isEntry
        self.name = name
        self.limits = limits
        documents = contents.documents
        clients = ClientMutationLog(contents.clients)
        revision = contents.revision(loadedAt: now)
        time = CollectionClock.advance(contents.time, to: now)
        secret = contents.secret ?? .random(in: .min ... .max)
        let all = documents.values
        expiries = ExpiryQueue(all)
        for document in all { shares.replace(nil, with: document) }
        while expire(at: now, limit: .max) {}
        expired = []
    }

    var isEmpty: Bool { shares.all.documents == 0 && documents.isEmpty && !hasUnwritten }
    var hasUnwritten: Bool { !unwritten.isEmpty || clients.hasUnwritten || !undeleted.isEmpty }
    /// The number of changed documents that are not written yet.
    var unwrittenCount: Int { unwritten.count }
    /// True when the batch must be written before more mutations are executed.
    var isBatchFull: Bool { isEntry && nextBytes >= Self.fullBatch }
    /// The documents and the bytes of documents and recorded outcomes.
    var memoryUsage: DocumentQuotas.Usage { shares.all + DocumentQuotas.Usage(bytes: clients.byteCount) }
    /// The number of clients with recorded mutations.
    var clientCount: Int { clients.count }

    /// Returns a document as the next command sees it.
    func document(_ id: DocumentID) -> Document? {
        let document = unwritten[id].map { $0.document } ?? documents[id]
        return document.flatMap { $0.isExpired(at: time) ? nil : $0 }
    }

    /// Returns an identifier of a host's network that is only valid in this collection and does not reveal the network.
    func origin(of host: CallerHost?) -> UInt32? {
        guard let host else { return nil }
        var digest = StableDigest()
        for number in [secret, host.network.number, secret] { digest.combine(number) }
        return UInt32(truncatingIfNeeded: digest.value ^ digest.value >> 32)
    }

    // MARK: Commands

    /// Returns the recorded outcome of a repeated mutation.
    func recordedOutcome(of mutation: DocumentMutation, by client: ByteText) -> MutationOutcome? {
        clients.outcome(of: mutation, by: client)
    }

    mutating func advanceTime(to now: Int) { time = CollectionClock.advance(time, to: now) }

    /// Applies the changes of a complete evaluation.
    mutating func apply(_ evaluation: borrowing MutationEvaluation) {
        for change in evaluation.changes {
            store(change.document, for: change.id, revision: change.revision)
        }
        revision = evaluation.revision
    }

    private mutating func store(_ document: Document?, for id: DocumentID, revision: Int) {
        // An expired document counts until it is removed.
        expireIfDue(id)
        shares.replace(self.document(id), with: document)
        unwritten[id] = Unwritten(document: document, revision: revision)
        if isEntry { nextBytes += document.map(Self.size) ?? Self.mutationOverhead / 4 }
        expiries.set(document?.expiryMilliseconds, for: id)
    }

    static func size(_ document: Document) -> Int {
        document.byteCount + (document.creator?.utf8.count ?? 0) + mutationOverhead / 4
    }

    /// Replaces a document without the rules and without the quotas of principals and hosts; nil deletes it.
    ///
    /// - Parameter now: milliseconds since 1970.
    mutating func replace(_ id: DocumentID, with document: Document?, at now: Int) throws(CollectionError) {
        var limits = limits
        (limits.principalQuotaDivisor, limits.hostQuotaDivisor) = (1, 1)
        advanceTime(to: now)
        let before = self.document(id)
        let changed = try stamped(
            document, before: before, revision: revision + 1, time: time, limits, beyond: DocumentQuotas())
        revision += 1
        store(changed, for: id, revision: revision)
    }

    /// The ids of all documents, as the next command sees them.
    var ids: [DocumentID] { Set(documents.keys).union(unwritten.keys).filter { document($0) != nil } }

    /// Records the outcome of a mutation.
    mutating func remember(_ outcome: MutationOutcome, of evaluation: borrowing MutationEvaluation, isWritten: Bool) {
        if isEntry { nextBytes += Self.mutationOverhead }
        clients.remember(
            outcome, of: evaluation.mutation, by: evaluation.client,
            scope: MutationScope(host: evaluation.origin, principal: evaluation.creator),
            isWritten ? .written : unwritten.isEmpty ? .unwritten : .uncertain, most: limits.deduplicatedClients)
    }

    // MARK: Expiry

    /// The time at which the next document expires, in milliseconds since 1970.
    var nextExpiry: Int? { mutating get { expiries.next() } }

    /// Removes up to `limit` expired documents; returns false when there are no more.
    mutating func expire(at now: Int, limit: Int) -> Bool {
        advanceTime(to: now)
        var count = 0
        while count < limit {
            guard let id = expiries.removeExpired(at: time) else { return false }
            remove(id)
            count += 1
        }
        return expiries.next().map { $0 <= time } ?? false
    }

    /// Returns the documents that have expired since the last call. Results must not show them, even before their deletion in the store.
    mutating func takeExpired() -> [DocumentChange] {
        defer { expired = [] }
        return expired
    }

    /// Removes a document that has expired.
    mutating func expireIfDue(_ id: DocumentID) {
        let document = unwritten[id].map { $0.document } ?? documents[id]
        guard document?.isExpired(at: time) == true else { return }
        expiries.set(nil, for: id)
        remove(id)
    }

    private mutating func remove(_ id: DocumentID) {
        guard let document = unwritten[id].map({ $0.document }) ?? documents[id] else { return }
        shares.replace(document, with: nil)
        unwritten[id] = nil
        undeleted.append(id)
        if documents.remove(id) != nil { expired.append(DocumentChange(id: id, after: nil)) }
    }

    // MARK: Writing

    /// Returns all unwritten changes; nil when there are none.
    mutating func beginWrite() -> Batch? {
        guard hasUnwritten else { return nil }
        undeleted += postponed
        postponed = []
        var batch = Batch(documents: unwritten, clients: clients.beginWrite(), revision: revision, time: time)
        nextBytes = 0
        let deleted = undeleted.suffix(isEntry ? Self.deletedTogether : Self.deletedAtOnce)
        undeleted.removeLast(deleted.count)
        deleting = Array(deleted)
        // Some may have been created again.
        for id in deleted where unwritten[id] == nil && documents[id] == nil {
            batch.documents[id] = Unwritten(document: nil, revision: revision)
        }
        batch.documentCount = batch.documents.reduce(documents.count) { count, change in
            count + (change.value.document == nil ? 0 : 1) - (documents[change.key] == nil ? 0 : 1)
        }
        return batch
    }

    /// Returns the contents of the store as of its last write. The copy is cheap; while it exists, changes copy parts of the
    /// data.
    ///
    /// - Parameter revision: the number of that write.
    func contents(at revision: Int) -> CollectionContents {
        var contents = CollectionContents(documents: documents, revision: revision, time: time, secret: secret)
        if clients.hasWritten { contents.copyClients = { [clients] in clients.written } }
        return contents
    }

    /// Completes a batch that is in the store; returns the changes for readers.
    mutating func endWrite(_ batch: Batch) -> [DocumentChange] {
        clients.endWrite(batch.clients)
        deleting = []
        let inOrder = batch.documents.sorted { $0.value.revision < $1.value.revision }
        return inOrder.map { id, written in
            if unwritten[id]?.revision == written.revision {
                (documents[id], unwritten[id]) = (written.document, nil)
                // It may have expired during the write, and still counts.
                expireIfDue(id)
            } else {
                // It was changed or removed during the write.
                documents[id] = written.document.flatMap { $0.isExpired(at: time) ? nil : $0 }
            }
            return DocumentChange(id: id, after: documents[id])
        }
    }

    /// Discards unwritten changes after a failed write, so that clients can repeat their mutations. Expired documents stay
    /// removed.
    mutating func discardUnwritten() {
        clients.discardUnwritten()
        nextBytes = 0
        let discarded = unwritten
        unwritten = [:]
        postponed += deleting
        deleting = []
        for (id, pending) in discarded {
            shares.replace(pending.document, with: documents[id])
            expiries.set(documents[id]?.expiryMilliseconds, for: id)
        }
    }
}

/// Operations of administrators on documents, without the rules.
extension DocumentTable {
    /// The outcome of restoring a document.
    enum Restored: String, Sendable {
        case created, replaced, skipped
    }

    /// Restores a document with its creator. An existing document is replaced or kept; an identical one is always kept, and an
    /// expired one is skipped. A replaced document keeps its place in the order of creation; a new one comes last.
    ///
    /// - Parameter now: milliseconds since 1970.
    mutating func restore(
        _ document: Document, replaces: Bool, at now: Int
    ) throws(CollectionError) -> Restored {
        let id = document.id
        guard (1...CollectionLimits.maximumNameLength).contains(id.byteCount) else {
            throw .invalidDocument("an id has 1 to \(CollectionLimits.maximumNameLength) bytes")
        }
        guard Document.id(document.fields["id"]) == id else {
            throw .invalidDocument("its member 'id' is not '\(id)'")
        }
        guard !document.isExpired(at: now) else { return .skipped }
        let before = self.document(id)
        if let before, !replaces || before.isLike(document) { return .skipped }
        var restored = Document(
            id: id, fields: document.fields, creator: document.creator,
            created: before?.creationRevision ?? revision + 1,
            createdAt: document.createdMilliseconds == 0 ? now : document.createdMilliseconds,
            expiresAt: document.expiryMilliseconds)
        restored.origin = before?.origin
        try replace(id, with: restored, at: now)
        return before == nil ? .created : .replaced
    }

    /// Deletes a document; returns false when there is none.
    mutating func delete(_ id: DocumentID, at now: Int) throws(CollectionError) -> Bool {
        guard document(id) != nil else { return false }
        try replace(id, with: nil, at: now)
        return true
    }
}

extension Document {
    fileprivate func isLike(_ other: Document) -> Bool {
        fields == other.fields && expiryMilliseconds == other.expiryMilliseconds
            && creator.map { ByteText($0) } == other.creator.map { ByteText($0) }
    }
}

/// The changes that a store write has.
extension DocumentTable {
    struct Unwritten: Sendable {
        let document: Document?
        let revision: Int
    }

    /// The changes of one store write.
    struct Batch: Sendable {
        /// The bytes of a line without its document or outcomes.
        private static let lineOverhead = 256

        var documents: [DocumentID: Unwritten] = [:]
        var clients: [(client: ByteText, change: MutationWindowChange)] = []
        var revision = 0
        /// The time of the last write.
        var time = 0
        /// The number of documents after the batch.
        var documentCount = 0

        /// The approximate size of its entries.
        var byteCount: Int {
            documents.values.reduce(0) { $0 + Self.lineOverhead + ($1.document?.byteCount ?? 0) }
                + clients.reduce(0) { $0 + Self.lineOverhead + ($1.change.window?.byteCount ?? 0) }
        }
    }
}

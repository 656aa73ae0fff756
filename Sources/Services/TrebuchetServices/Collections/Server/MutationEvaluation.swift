internal import Platform

/// The evaluation of a mutation: the documents after its writes so far. Pure.
///
/// The table does not change before the evaluation is complete. So a mutation can be evaluated in several turns while other
/// mutations, batches, expiry and administrators change the table. When they have changed a document that it has read, it
/// starts again.
struct MutationEvaluation: Sendable {
    /// A document after the writes so far.
    struct Change: Sendable {
        let id: DocumentID
        /// Nil for a deleted document.
        var document: Document?
        /// The number of the last write to it.
        var revision: Int
        /// True when it was created, and when its expiry was set, by this mutation.
        var isCreated: Bool
        var isExpirySet: Bool
    }

    let mutation: DocumentMutation
    let client: ByteText
    let creator: String?
    let origin: UInt32?
    /// Milliseconds since 1970; see `CollectionClock.advance`.
    private(set) var time = 0
    /// The changed documents.
    private(set) var changes: [Change] = []
    /// The quotas that the changes use in addition.
    private(set) var quotas = DocumentQuotas()
    /// The number of the last write.
    private(set) var revision = 0
    /// The index of the next write.
    private(set) var next = 0
    /// The number of its parts that started with the first write.
    private(set) var starts = 0
    /// The number of the table's last write when it started.
    private(set) var firstRevision = 0
    /// The size of the changed documents in a batch.
    private var byteCount = 0
    /// The documents of the table that the writes have read, if there are several writes.
    private var reads: [(id: DocumentID, document: Document?)] = []
    /// The documents of other collections that the writes require.
    private var targets: [LinkTarget] = []

    init(_ mutation: DocumentMutation, from client: ByteText, creator: String?, origin: UInt32?) {
        (self.mutation, self.client, self.creator, self.origin) = (mutation, client, creator, origin)
    }

    /// True when some writes were evaluated.
    var isStarted: Bool { starts > 0 }
    var hasChanges: Bool { revision > firstRevision }

    /// The bytes of the documents that it has read and changed.
    var memoryBytes: Int {
        reads.reduce(changes.reduce(0) { $0 + ($1.document?.byteCount ?? 0) }) { $0 + ($1.document?.byteCount ?? 0) }
    }

    /// The documents of the table that the writes have read; only for several writes.
    var readDocuments: some Sequence<DocumentID> { reads.lazy.map(\.id) }

    /// Starts with the first write.
    ///
    /// - Parameter revision: the number of the table's last write.
    mutating func start(at time: Int, revision: Int) {
        (self.time, self.revision, firstRevision) = (time, revision, revision)
        (changes, quotas, reads, targets, next, byteCount) = ([], DocumentQuotas(), [], [], 0, 0)
        starts += 1
    }

    /// Returns whether the table still has the documents that the writes have read, and other collections those that they require.
    func isValid(isThere: (LinkTarget) -> Bool, _ document: (DocumentID) -> Document?) -> Bool {
        targets.allSatisfy(isThere)
            && reads.allSatisfy { id, before in
                switch (before, document(id)) {
                case (nil, nil): true
                case (let before?, let now?): before.isSame(as: now)
                default: false
                }
            }
    }

    /// Notes a document of another collection that a write requires.
    mutating func require(_ target: LinkTarget) { targets.append(target) }

    /// Gives the changes the numbers and the time of writes after others that were made meanwhile.
    ///
    /// - Parameters:
    ///   - revision: the number of the table's last write.
    ///   - time: milliseconds since 1970.
    mutating func renumber(after revision: Int, at time: Int) {
        guard revision != firstRevision || time != self.time else { return }
        let offset = revision - firstRevision
        for place in changes.indices {
            changes[place].revision += offset
            let change = changes[place]
            changes[place].document?.renumber(by: offset, at: time, isCreated: change.isCreated)
            guard change.isExpirySet, time != self.time, let expiry = change.document?.expiryMilliseconds else {
                continue
            }
            changes[place].document?.expiryMilliseconds = expiry + time - self.time
        }
        (self.revision, firstRevision, self.time) = (self.revision + offset, revision, time)
    }

    /// Returns a document as the next write sees it.
    ///
    /// - Parameter stored: returns the document of the table.
    mutating func document(_ id: DocumentID, _ stored: (DocumentID) -> Document?) -> Document? {
        if let change = changes.first(where: { $0.id == id }) { return change.document }
        let document = stored(id)
        if mutation.writes.count > 1 { reads.append((id, document)) }
        return document
    }

    /// Adds a change.
    ///
    /// - Parameter isMeasured: whether the size of the documents in a batch counts.
    /// - Returns: the size of all changed documents; 0 where it does not count.
    mutating func put(
        _ document: Document?, for id: DocumentID, before: Document?, isMeasured: Bool
    ) -> Int {
        revision += 1
        if mutation.writes.count > 1 { quotas.replace(before, with: document) }
        var change = Change(
            id: id, document: document, revision: revision, isCreated: before == nil,
            isExpirySet: document?.expiryMilliseconds != before?.expiryMilliseconds)
        if isMeasured { byteCount += document.map(DocumentTable.size) ?? 0 }
        if let place = changes.firstIndex(where: { $0.id == id }) {
            if before != nil { change.isCreated = changes[place].isCreated }
            if before?.expiryMilliseconds == document?.expiryMilliseconds {
                change.isExpirySet = changes[place].isExpirySet
            }
            if isMeasured { byteCount -= changes[place].document.map(DocumentTable.size) ?? 0 }
            changes[place] = change
        } else {
            changes.append(change)
        }
        return byteCount
    }

    mutating func advance() { next += 1 }
}

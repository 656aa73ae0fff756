internal import Platform
internal import Trebuchet

/// The documents of a collection and the recorded mutations of its clients, with the changes that are not in the store yet. Pure.
///
/// Commands see unwritten changes; readers only see written ones. Mutations are executed in the order of their arrival here: of two writes
/// to one field the later one wins, whatever the client's time was.
struct DocumentTable: Sendable {
    typealias ChangeCheck = (DocumentChangeRequest) throws(CollectionError) -> Void

    /// The state to restore when a mutation fails.
    private struct Savepoint {
        let revision: Int
        var unwritten: [(id: DocumentID, before: Unwritten?)] = []
    }

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
    private var time: Int
    private let name: String
    /// The current limits; documents above a lowered limit stay.
    var limits: CollectionLimits
    /// The key for identifiers of hosts.
    let secret: UInt64
    /// The quotas, including unwritten changes.
    private(set) var shares = DocumentQuotas()
    /// True when a batch is one entry in the coordination store, which has a maximum size.
    private let isEntry: Bool
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

    /// Executes a mutation atomically. A repeated mutation has its recorded outcome.
    ///
    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - isThere: returns whether a document exists in another collection.
    ///   - check: throws when the client may not make a change; nil calls `may` for the document to change.
    ///   - may: returns whether the client may perform an action; called before any detail of the document is revealed.
    mutating func apply(
        _ mutation: DocumentMutation, from client: String, creator: String?, origin: UInt32? = nil, at now: Int,
        isThere: (LinkTarget) -> Bool = { _ in false }, check: ChangeCheck? = nil,
        may: (CollectionAction, Document) -> Bool
    ) -> MutationOutcome {
        let (client, scope) = (ByteText(client), MutationScope(host: origin, principal: creator))
        if let outcome = clients.outcome(of: mutation, by: client) { return outcome }
        time = CollectionClock.advance(time, to: now)
        for write in mutation.writes { expireIfDue(write.command.id) }
        var savepoint = Savepoint(revision: revision)
        var index = 0
        do throws(CollectionError) {
            for write in mutation.writes {
                try perform(write, creator, origin, &savepoint, isThere: isThere, check: check, may: may)
                try checkTogether(savepoint, write.command.id)
                index += 1
            }
        } catch {
            restore(savepoint)
            let outcome = MutationOutcome(
                number: mutation.number, revision: revision, error: error,
                index: mutation.writes.count > 1 ? index : nil)
            remember(outcome, of: mutation, by: client, scope, isWritten: false)
            return outcome
        }
        let outcome = MutationOutcome(number: mutation.number, revision: revision)
        remember(outcome, of: mutation, by: client, scope, isWritten: revision > savepoint.revision)
        return outcome
    }

    /// A document that the client may not read does not exist for its commands: any other outcome, or the index of the first refused
    /// command, would reveal its existence or content. Creation is the exception, because an id can be used only once.
    private mutating func perform(
        _ write: DocumentWrite, _ creator: String?, _ origin: UInt32?, _ savepoint: inout Savepoint,
        isThere: (LinkTarget) -> Bool, check: ChangeCheck?, may: (CollectionAction, Document) -> Bool
    ) throws(CollectionError) {
        let command = write.command
        guard (1...CollectionLimits.maximumNameLength).contains(command.id.byteCount) else {
            throw .invalidDocument("an id has 1 to \(CollectionLimits.maximumNameLength) bytes")
        }
        let context = CommandContext(
            creator: creator, origin: origin, number: revision + 1, time: time, lifetime: limits.lifetime(in: name))
        var before = document(command.id)
        if let document = before, command.action != .create, !may(.read, document) { before = nil }
        try perform(write, on: before, context, &savepoint, isThere: isThere, check: check, may: may)
    }

    private mutating func perform(
        _ write: DocumentWrite, on before: Document?, _ context: CommandContext, _ savepoint: inout Savepoint,
        isThere: (LinkTarget) -> Bool, check: ChangeCheck?, may: (CollectionAction, Document) -> Bool
    ) throws(CollectionError) {
        let command = write.command
        let id = command.id
        if let before, command.action != .create, !may(command.action, before) {
            let change =
                command.action == .delete
                ? DocumentChangeRequest(deleting: before) : DocumentChangeRequest(updating: before, to: before)
            // The check knows the reason.
            try check?(change)
            throw change.forbidden()
        }
        if let before, write.condition != nil, !may(.read, before) {
            // The outcome of a condition reveals content; to create is refused as without one.
            throw .alreadyExists(id: id.text)
        }
        if let condition = write.condition, !condition.isSatisfied(by: before) { throw condition.failure(id, before) }
        let after: Document?
        if case .check = command {
            guard before != nil || write.condition?.isAbsent == true else { throw .notFound(id: id.text) }
            after = before
        } else {
            after = try command.perform(on: before, context)
        }
        if let target = command.target { try checkLink(target, isThere, may) }
        guard after != before else { return }
        if let change = DocumentChangeRequest(before, after) {
            if let check {
                try check(change)
            } else if !may(change.action, change.document) {
                throw change.forbidden()
            }
        }
        if let before, let after, after.expiresAt ?? .max < before.expiresAt ?? .max {
            // A shorter lifetime amounts to a deletion.
            let deletion = DocumentChangeRequest(deleting: before)
            try check?(deletion)
            guard may(.delete, before) else { throw deletion.forbidden() }
        }
        if let after, Document.id(after.fields["id"]) != id { throw .invalidDocument("its member 'id' is not '\(id)'") }
        try put(after, for: id, before: before, &savepoint)
    }

    /// Throws when the documents of a mutation exceed one entry, because they must be written together.
    private func checkTogether(_ savepoint: Savepoint, _ id: DocumentID) throws(CollectionError) {
        guard isEntry, savepoint.unwritten.count > 1 || nextBytes > Self.maximumBatchCount else { return }
        let ids = Set(savepoint.unwritten.lazy.map(\.id))
        let bytes = ids.reduce(0) { $0 + (unwritten[$1]?.document.map(Self.size) ?? 0) }
        guard bytes > Self.maximumBatchCount else { return }
        throw .documentTooLarge(id: id.text, bytes: bytes, limit: Self.maximumBatchCount)
    }

    private static func size(_ document: Document) -> Int {
        document.byteCount + (document.creator?.utf8.count ?? 0) + mutationOverhead / 4
    }

    private mutating func checkLink(
        _ target: LinkTarget, _ isThere: (LinkTarget) -> Bool, _ may: (CollectionAction, Document) -> Bool
    ) throws(CollectionError) {
        let isFound =
            target.collection == name ? document(target.id).map { may(.read, $0) } ?? false : isThere(target)
        guard isFound else { throw .linkTargetMissing(id: target.id.text, collection: target.collection) }
    }

    private mutating func put(
        _ document: Document?, for id: DocumentID, before: Document?, _ savepoint: inout Savepoint
    ) throws(CollectionError) {
        var document = document
        document?.revision = revision + 1
        document?.updatedAt = time
        if let document {
            let size = document.byteCount
            guard size <= limits.documentBytes else {
                throw .documentTooLarge(id: id.text, bytes: size, limit: limits.documentBytes)
            }
            guard !document.fields.isDeeper(than: CollectionLimits.maximumDepth) else {
                throw .tooDeep(limit: CollectionLimits.maximumDepth)
            }
            try shares.check(before, with: document, limits)
        }
        savepoint.unwritten.append((id, unwritten[id]))
        revision += 1
        shares.replace(before, with: document)
        unwritten[id] = Unwritten(document: document, revision: revision)
        if isEntry { nextBytes += document.map(Self.size) ?? Self.mutationOverhead / 4 }
        expiries.set(document?.expiresAt, for: id)
    }

    /// Replaces a document without the rules and without the quotas of principals and hosts; nil deletes it.
    ///
    /// - Parameter now: milliseconds since 1970.
    mutating func replace(_ id: DocumentID, with document: Document?, at now: Int) throws(CollectionError) {
        let usual = limits
        (limits.principalQuotaDivisor, limits.hostQuotaDivisor) = (1, 1)
        defer { limits = usual }
        time = CollectionClock.advance(time, to: now)
        var savepoint = Savepoint(revision: revision)
        try put(document, for: id, before: self.document(id), &savepoint)
    }

    /// The ids of all documents, as the next command sees them.
    var ids: [DocumentID] { Set(documents.keys).union(unwritten.keys).filter { document($0) != nil } }

    private mutating func restore(_ savepoint: Savepoint) {
        revision = savepoint.revision
        for (id, before) in savepoint.unwritten.reversed() {
            let undone = document(id)
            unwritten[id] = before
            let document = document(id)
            shares.replace(undone, with: document)
            expiries.set(document?.expiresAt, for: id)
        }
    }

    private mutating func remember(
        _ outcome: MutationOutcome, of mutation: DocumentMutation, by client: ByteText, _ scope: MutationScope?,
        isWritten: Bool
    ) {
        if isEntry { nextBytes += Self.mutationOverhead }
        clients.remember(
            outcome, of: mutation, by: client, scope: scope,
            isWritten ? .written : unwritten.isEmpty ? .unwritten : .uncertain, most: limits.deduplicatedClients)
    }

    // MARK: Expiry

    /// The time at which the next document expires, in milliseconds since 1970.
    var nextExpiry: Int? { mutating get { expiries.next() } }

    /// Removes up to `limit` expired documents; returns false when there are no more.
    mutating func expire(at now: Int, limit: Int) -> Bool {
        time = CollectionClock.advance(time, to: now)
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

    private mutating func expireIfDue(_ id: DocumentID) {
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
            // The document may have expired during the write.
            let document = written.document.flatMap { $0.isExpired(at: time) ? nil : $0 }
            documents[id] = document
            if unwritten[id]?.revision == written.revision { unwritten[id] = nil }
            return DocumentChange(id: id, after: document)
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
            expiries.set(documents[id]?.expiresAt, for: id)
        }
    }
}

internal import Platform
internal import Trebuchet

/// The documents of a collection and what is remembered of its clients: what is written, and what is still to be written.
/// Pure.
///
/// Commands look at both; readers are shown what is written alone. The order in which mutations come here is that of the
/// collection: of two writes to one field the later one counts, whenever its client made it.
struct DocumentTable: Sendable {
    typealias ChangeCheck = (DocumentChangeRequest) throws(CollectionError) -> Void

    struct Unwritten: Sendable {
        let document: Document?
        let revision: Int
    }

    /// What is written to the store together.
    struct Batch: Sendable {
        var documents: [DocumentID: Unwritten] = [:]
        var clients: [ByteText: WindowChange] = [:]
        var revision = 0
        /// The time of the last write.
        var time = 0
        /// How many documents there are with it.
        var documentCount = 0
    }

    /// What a mutation that comes to nothing must leave as it was.
    private struct Savepoint {
        let revision: Int
        var unwritten: [(id: DocumentID, before: Unwritten?)] = []
    }

    /// Documents that have expired and are deleted from the store with one batch; and where that is one entry at an engine.
    private static let deletedAtOnce = 2_000
    private static let deletedTogether = 500
    /// Bytes of the documents that one mutation may write where a batch is one entry at an engine.
    static let mostTogether = 512 << 10
    /// Bytes after which a batch takes no more mutations there, and what each counts beside its documents.
    private static let fullBatch = 256 << 10
    private static let mutationOverhead = 1 << 10

    /// As it is in the store, without what has expired.
    private(set) var documents: DocumentMap
    private var unwritten: [DocumentID: Unwritten] = [:]
    private var expiries: ExpiryQueue
    /// What has expired and was not taken for readers yet.
    private var expired: [DocumentChange] = []
    /// What has expired and is still to be deleted from the store.
    private var undeleted: [DocumentID] = []
    /// What of that is in the batch that is being written, and what could not be deleted and waits for the next write.
    private var deleting: [DocumentID] = []
    private var postponed: [DocumentID] = []
    private var clients: RememberedClients
    /// The number of the last write.
    private(set) var revision: Int
    /// The time of the last write, in milliseconds since 1970; see `CollectionClock.advance`.
    private var time: Int
    private let name: String
    /// Those of now: documents that are there stay when they are lowered.
    var limits: CollectionLimits
    /// Of what hosts are told from each other by.
    let secret: UInt64
    /// With what is still to be written.
    private(set) var shares = DocumentShares()
    /// Whether a batch is one entry at an engine, which takes no larger one.
    private let isEntry: Bool
    /// About how many bytes are to be written with the next batch.
    private var nextBytes = 0

    /// - Parameters:
    ///   - name: of the collection.
    ///   - contents: as the store has it.
    ///   - now: milliseconds since 1970. What has expired by then is not there, and is to be deleted from the store.
    ///   - isEntry: whether what is written together is one entry at an engine.
    init(
        _ name: String = "", limits: CollectionLimits, _ contents: CollectionContents = CollectionContents(),
        at now: Int = 0, isEntry: Bool = false
    ) {
        self.isEntry = isEntry
        self.name = name
        self.limits = limits
        documents = contents.documents
        clients = RememberedClients(contents.clients)
        revision = contents.revision(loadedAt: now)
        time = CollectionClock.advance(contents.time, to: now)
        secret = contents.secret ?? .random(in: .min ... .max)
        expiries = ExpiryQueue(documents.values)
        for document in documents.values { shares.replace(nil, with: document) }
        while expire(at: now, limit: .max) {}
        expired = []
    }

    var isEmpty: Bool { shares.all.documents == 0 && documents.isEmpty && !hasUnwritten }
    var hasUnwritten: Bool { !unwritten.isEmpty || clients.hasUnwritten || !undeleted.isEmpty }
    /// Documents that commands have changed and that are still to be written.
    var unwrittenCount: Int { unwritten.count }
    /// Whether what waits is to be written before more is done.
    var isBatchFull: Bool { isEntry && nextBytes >= Self.fullBatch }
    /// How many clients are remembered.
    var clientCount: Int { clients.count }

    /// A document, as the next command finds it.
    func document(_ id: DocumentID) -> Document? {
        let document = unwritten[id].map { $0.document } ?? documents[id]
        return document.flatMap { $0.isExpired(at: time) ? nil : $0 }
    }

    /// What tells a host from others in this collection, and says nothing of it elsewhere.
    func origin(of host: CallerHost?) -> UInt32? {
        guard let host else { return nil }
        var digest = StableDigest()
        for number in [secret, host.number, secret] { digest.combine(number) }
        return UInt32(truncatingIfNeeded: digest.value ^ digest.value >> 32)
    }

    // MARK: Commands

    /// Does a mutation, all of it or nothing, unless that was done before: then it gives the outcome of that time.
    ///
    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - isThere: whether there is a document in another collection.
    ///   - check: throws why the client may not make a change; nil asks `may` about the document that is to be changed.
    ///   - may: whether the client may do something with a document; asked before anything is told of it.
    mutating func apply(
        _ mutation: DocumentMutation, from client: String, creator: String?, origin: UInt32? = nil, at now: Int,
        isThere: (LinkTarget) -> Bool = { _ in false }, check: ChangeCheck? = nil,
        may: (CollectionAction, Document) -> Bool
    ) -> MutationOutcome {
        let client = ByteText(client)
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
            remember(outcome, of: mutation, by: client, isWritten: false)
            return outcome
        }
        let outcome = MutationOutcome(number: mutation.number, revision: revision)
        remember(outcome, of: mutation, by: client, isWritten: revision > savepoint.revision)
        return outcome
    }

    /// Who may not read a document hears of his failures what he would hear if there were none: any other answer tells that it is there,
    /// or what is in it. An id can be taken once, so who creates hears of it all the same.
    private mutating func perform(
        _ write: DocumentWrite, _ creator: String?, _ origin: UInt32?, _ savepoint: inout Savepoint,
        isThere: (LinkTarget) -> Bool, check: ChangeCheck?, may: (CollectionAction, Document) -> Bool
    ) throws(CollectionError) {
        let command = write.command
        guard (1...CollectionLimits.longestName).contains(command.id.byteCount) else {
            throw .invalidDocument("an id has 1 to \(CollectionLimits.longestName) bytes")
        }
        let context = CommandContext(
            creator: creator, origin: origin, number: revision + 1, time: time, lifetime: limits.lifetime(in: name))
        let before = document(command.id)
        do {
            try perform(write, on: before, context, &savepoint, isThere: isThere, check: check, may: may)
        } catch {
            guard let before, command.action != .create, !may(.read, before) else { throw error }
            try perform(write, on: nil, context, &savepoint, isThere: isThere, check: check, may: may)
        }
    }

    private mutating func perform(
        _ write: DocumentWrite, on before: Document?, _ context: CommandContext, _ savepoint: inout Savepoint,
        isThere: (LinkTarget) -> Bool, check: ChangeCheck?, may: (CollectionAction, Document) -> Bool
    ) throws(CollectionError) {
        let command = write.command
        let id = command.id
        if let before {
            if command.action != .create, !may(command.action, before) {
                let change =
                    command.action == .delete
                    ? DocumentChangeRequest(deleting: before) : DocumentChangeRequest(updating: before, to: before)
                // It knows the reason.
                try check?(change)
                throw change.forbidden()
            }
            // Whether it holds says what is there.
            if write.condition != nil, !may(.read, before) { throw .forbidden(.read, id: id.text) }
        }
        if let condition = write.condition, !condition.holds(for: before) { throw condition.failure(id, before) }
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
            // It goes sooner by that: as who deletes it.
            let deletion = DocumentChangeRequest(deleting: before)
            try check?(deletion)
            guard may(.delete, before) else { throw deletion.forbidden() }
        }
        if let after, Document.id(after.fields["id"]) != id { throw .invalidDocument("its member 'id' is not '\(id)'") }
        try put(after, for: id, before: before, &savepoint)
    }

    /// Throws when the documents of a mutation have no room in one entry: they are written together, or not.
    private func checkTogether(_ savepoint: Savepoint, _ id: DocumentID) throws(CollectionError) {
        guard isEntry, savepoint.unwritten.count > 1 || nextBytes > Self.mostTogether else { return }
        let ids = Set(savepoint.unwritten.lazy.map(\.id))
        let bytes = ids.reduce(0) { $0 + (unwritten[$1]?.document.map(Self.size) ?? 0) }
        guard bytes > Self.mostTogether else { return }
        throw .documentTooLarge(id: id.text, bytes: bytes, limit: Self.mostTogether)
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
        document?.count()
        if let document {
            let size = document.byteCount
            guard size <= limits.documentBytes else {
                throw .documentTooLarge(id: id.text, bytes: size, limit: limits.documentBytes)
            }
            guard document.depth <= CollectionLimits.deepest else {
                throw .tooDeep(limit: CollectionLimits.deepest)
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

    /// Puts a document in the place of another, past the rules and the shares of principals and hosts; nil deletes it.
    ///
    /// - Parameter now: milliseconds since 1970.
    mutating func replace(_ id: DocumentID, with document: Document?, at now: Int) throws(CollectionError) {
        let usual = limits
        (limits.principalShare, limits.hostShare) = (1, 1)
        defer { limits = usual }
        time = CollectionClock.advance(time, to: now)
        var savepoint = Savepoint(revision: revision)
        try put(document, for: id, before: self.document(id), &savepoint)
    }

    /// The ids of all documents, as the next command finds them.
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
        _ outcome: MutationOutcome, of mutation: DocumentMutation, by client: ByteText, isWritten: Bool
    ) {
        if isEntry { nextBytes += Self.mutationOverhead }
        clients.remember(
            outcome, of: mutation, by: client,
            isWritten ? .written : unwritten.isEmpty ? .unwritten : .uncertain, most: limits.rememberedClients)
    }

    // MARK: Expiry

    /// When the next document expires, in milliseconds since 1970.
    var nextExpiry: Int? { mutating get { expiries.next() } }

    /// Takes away what has expired, at most so much; false when there is no more.
    mutating func expire(at now: Int, limit: Int) -> Bool {
        time = CollectionClock.advance(time, to: now)
        var count = 0
        while count < limit {
            guard let id = expiries.take(at: time) else { return false }
            remove(id)
            count += 1
        }
        return expiries.next().map { $0 <= time } ?? false
    }

    /// What has expired since the last time, for readers: it is gone for them before the store has deleted it.
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

    /// All that is to be written; nil when that is nothing.
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

    /// What the store has, as of the last write that is in it. It costs nothing but for what changes as long as it is kept.
    ///
    /// - Parameter revision: of that write.
    func contents(at revision: Int) -> CollectionContents {
        CollectionContents(
            documents: documents, clients: clients.written, revision: revision, time: time, secret: secret)
    }

    /// A batch is in the store; returns what that changes for readers.
    mutating func endWrite(_ batch: Batch) -> [DocumentChange] {
        clients.endWrite(batch.clients)
        deleting = []
        let inOrder = batch.documents.sorted { $0.value.revision < $1.value.revision }
        return inOrder.map { id, written in
            // It may have expired while it was written.
            let document = written.document.flatMap { $0.isExpired(at: time) ? nil : $0 }
            documents[id] = document
            if unwritten[id]?.revision == written.revision { unwritten[id] = nil }
            return DocumentChange(id: id, after: document)
        }
    }

    /// What was to be written cannot be: all is as the store has it, so that the same mutations can come again. What has expired
    /// stays away.
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
